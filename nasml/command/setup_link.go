package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// linkCPUPlugin links the plugin of xla-cpu-pjrt to where go-xla looks for it.
func (s *site) linkCPUPlugin(_ context.Context, j *job) error {
	if err := os.MkdirAll(s.path("pjrt"), 0o755); err != nil {
		return fmt.Errorf("making the plugin folder: %w", err)
	}
	if runtime.GOOS != "linux" {
		j.logf("PyPI has no XLA plugin for %s: set GOMLX_BACKEND=go for the slow pure-Go backend, or %s to a folder "+
			"that holds one", runtime.GOOS, pluginPathVar)
		return nil
	}
	packages, err := s.sitePackages("venv")
	if err != nil {
		return err
	}
	return link(filepath.Join(packages, "xla_plugins", "xla_cpu_pjrt", "xla_cpu_pjrt.so"), s.cpuPlugin())
}

func (s *site) sitePackages(venv string) (string, error) {
	entries, err := os.ReadDir(s.path(venv, "lib"))
	if err != nil || len(entries) != 1 {
		return "", fmt.Errorf("%s is not a virtual environment with one Python (%d folders in lib): delete it and run "+
			"`go tool nasml setup` again", s.path(venv), len(entries))
	}
	return s.path(venv, "lib", entries[0].Name(), "site-packages"), nil
}

// linkInside makes Go's linker link C code, too, which saves a fifth of a cell's build time. It cannot with every C
// compiler; set-up finds out.
const linkInside = "-linkmode=internal"

func (s *site) linksInside(ctx context.Context, dir string, env []string) bool {
	for _, args := range [][]string{{"go", "build", "-o", "inside", "."}, {"./inside"}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, env
		if cmd.Run() != nil {
			return false
		}
	}
	return true
}

func (s *site) cellGoFlags() string {
	link, _ := os.ReadFile(s.path("link")) // where it cannot be read: as without
	return withLink(string(link))
}

func withLink(option string) string {
	if option == "" {
		return kernelGoFlags
	}
	return strings.TrimSuffix(kernelGoFlags, "'") + " " + option + "'"
}

// libraries lists the checkout's packages that cells may import. Buckets are left out, because their dependencies take
// longer to build than everything else.
func (s *site) libraries(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`,
		"./...")
	cmd.Dir, cmd.Env = s.Root, s.env()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of the checkout: %s", reason(err))
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool {
		return strings.Contains(path, "/internal/") || strings.HasSuffix(path, "/runs/bucket") ||
			strings.HasSuffix(path, "/nasml/command")
	}), nil
}

func (s *site) setupCUDA(ctx context.Context, c console, force bool) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf(
			"no CUDA on %s/%s: go-xla loads the CUDA plugin on linux/amd64 only; the CPU plugin is set up",
			runtime.GOOS, runtime.GOARCH)
	}
	if devices, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(devices) == 0 {
		if !force {
			return errors.New("no NVIDIA GPU found (/dev/nvidia0 does not exist): is the driver loaded " +
				"(`nvidia-smi`), and does a container pass the GPU on (`--gpus all`)? The CPU plugin is set up; " +
				"--force installs the CUDA plugin all the same")
		}
		c.logf("no NVIDIA GPU found (/dev/nvidia0 does not exist): installing the CUDA plugin because of --force")
	}
	return s.bring(ctx, c, []step{
		s.venvStep("venv-cuda",
			"the CUDA plugin and NVIDIA's libraries into .nasml/venv-cuda (several minutes, downloads about 2.5 GB)",
			requirementsCUDA, 11, 4500),
		{
			name:    "plugin-cuda",
			inputs:  append(s.places(), requirementsCUDA),
			outputs: []string{s.path("pjrt", "pjrt_c_api_cuda_plugin.so"), s.path("nvidia", "cu13")},
			run:     s.linkCUDAPlugin,
		},
	})
}

// linkCUDAPlugin lays the plugin and NVIDIA's libraries out as the plugin expects: ../nvidia beside its folder, with
// ptxas in nvidia/bin.
func (s *site) linkCUDAPlugin(context.Context, *job) error {
	packages, err := s.sitePackages("venv-cuda")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("nvidia"), 0o755); err != nil {
		return fmt.Errorf("making the folder of NVIDIA's libraries: %w", err)
	}
	libraries, err := os.ReadDir(filepath.Join(packages, "nvidia"))
	if err != nil {
		return fmt.Errorf("looking for NVIDIA's libraries: %w", err)
	}
	for _, library := range libraries {
		name := library.Name()
		if err := link(filepath.Join(packages, "nvidia", name), s.path("nvidia", name)); err != nil {
			return err
		}
	}
	if err := link(s.path("nvidia", "cu13", "bin"), s.path("nvidia", "bin")); err != nil {
		return err
	}
	return link(filepath.Join(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"),
		s.path("pjrt", "pjrt_c_api_cuda_plugin.so"))
}

// link makes or replaces a symbolic link atomically.
func link(target, name string) error {
	fresh := name + ".new"
	_ = os.Remove(fresh) // left by a set-up that broke off, or not there
	if err := os.Symlink(target, fresh); err != nil {
		return fmt.Errorf("linking a file: %w", err)
	}
	return os.Rename(fresh, name)
}
