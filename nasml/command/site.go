package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const modulePath = "github.com/nasml/lab"

// site is a checkout and the folder of its set-up: .nasml in the checkout, or another one, so that a container's set-up
// is not hidden by a mounted checkout.
type site struct {
	Root string  // absolute path of the checkout
	Made string  // absolute path of the set-up's folder; empty: .nasml in Root
	Go   goFacts // the Go that builds it
}

// setupVar names the folder of the set-up, where it is not .nasml.
const setupVar = "NASML_SETUP"

// goFacts are the answers of `go env`.
type goFacts struct{ GOROOT, GOVERSION, CGO_ENABLED, CC string } //nolint:revive // names of go env

// openSite finds the checkout around the working directory and asks its Go for its settings.
func openSite(ctx context.Context) (*site, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	s := &site{Root: root}
	if made := os.Getenv(setupVar); made != "" {
		if s.Made, err = filepath.Abs(made); err != nil {
			return nil, fmt.Errorf("finding the set-up's folder $%s: %w", setupVar, err)
		}
		if resolved(s.Made) == resolved(filepath.Join(root, ".nasml")) {
			s.Made = "" // the default, spelled out
		}
	}
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOROOT", "GOVERSION", "CGO_ENABLED", "CC")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf(
			"asking go for its settings: %s; install the Go version that go.mod names from https://go.dev/dl",
			reason(err))
	}
	if err := json.Unmarshal(out, &s.Go); err != nil {
		return nil, fmt.Errorf("reading the answer of `go env -json`: %w", err)
	}
	return s, nil
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if modfile.ModulePath(text) == modulePath {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf(
				"no checkout of %s in %s or above it: change into the checkout and run the command again", modulePath,
				start)
		}
	}
}

func (s *site) path(parts ...string) string {
	made := s.Made
	if made == "" {
		made = filepath.Join(s.Root, ".nasml")
	}
	return filepath.Join(append([]string{made}, parts...)...)
}

func (s *site) places() []string {
	if s.Made == "" {
		return []string{s.Root}
	}
	return []string{s.Root, s.Made}
}

func (s *site) relative(path string) string {
	if rel, err := filepath.Rel(s.Root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// env is the environment of child programs: the process's own, with the set-up's tools first in PATH and Python and
// Jupyter confined to the set-up.
func (s *site) env(more ...string) []string {
	set := append([]string{
		"PATH=" + s.toolPath() + ":" + os.Getenv("PATH"),
		"PYTHONNOUSERSITE=1", "PYTHONPATH=", "PYTHONHOME=", "PIP_USER=0",
		"JUPYTER_PATH=" + s.path("share", "jupyter"),
		"JUPYTER_CONFIG_DIR=" + s.path("jupyter", "config"),
		"JUPYTER_DATA_DIR=" + s.path("jupyter", "data"),
		"JUPYTER_RUNTIME_DIR=" + s.path("jupyter", "runtime"),
		"IPYTHONDIR=" + s.path("jupyter", "ipython"),
		"GOMLX_NO_AUTO_INSTALL=1",
	}, more...)
	if os.Getenv(pluginPathVar) == "" { // a folder that the user names comes first
		set = append(set, pluginPathVar+"="+s.path("pjrt"))
	}
	return append(os.Environ(), set...) // of a name that stands twice, the last holds
}

func (s *site) toolPath() string {
	return s.path("bin") + ":" + s.path("gopls") + ":" + filepath.Join(s.Go.GOROOT, "bin")
}

// pluginPathVar lists the folders in which go-xla looks for PJRT plugins.
const pluginPathVar = "PJRT_PLUGIN_LIBRARY_PATH"

func (s *site) python(venv string) string { return s.path(venv, "bin", "python") }

// reason is what a failed command printed, or else its status.
func reason(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return err.Error()
}
