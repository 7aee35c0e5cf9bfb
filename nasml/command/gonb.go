package command

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/nasml/lab/internal/files"
)

const gonbModule = "github.com/janpfeifer/gonb"

//go:embed gonb.yaml
var gonbEdits string

// gonbEdit changes a text that is in a file of the pinned GoNB once.
type gonbEdit struct{ File, From, To string }

// editedGoNB copies the pinned GoNB into a folder and edits it. It returns the build argument that selects the copy.
func (s *site) editedGoNB(ctx context.Context, dir string) (modfile string, err error) {
	from, err := s.moduleDir(ctx, gonbModule)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "gonb")
	for _, part := range []string{"common", "gonbui", "internal", "version"} {
		if err := os.CopyFS(filepath.Join(copied, part), os.DirFS(filepath.Join(from, part))); err != nil {
			return "", fmt.Errorf("copying GoNB's source: %w", err)
		}
	}
	for _, name := range []string{"go.mod", "main.go", "version.go"} {
		if err := copyFile(filepath.Join(copied, name), filepath.Join(from, name)); err != nil {
			return "", fmt.Errorf("copying GoNB's source: %w", err)
		}
	}
	if err := editGoNB(copied); err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(s.Root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the versions that GoNB is built with: %w", err)
	}
	file := filepath.Join(dir, "go.mod")
	if err := files.WriteBytes(file, fmt.Sprintf("%s\nreplace %s => %q\n", mod, gonbModule, copied)); err != nil {
		return "", err
	}
	return "-modfile=" + file, copyFile(filepath.Join(dir, "go.sum"), filepath.Join(s.Root, "go.sum"))
}

func editGoNB(dir string) error {
	var edits []gonbEdit
	if err := yaml.Unmarshal([]byte(gonbEdits), &edits); err != nil {
		return fmt.Errorf("reading the changes to GoNB: %w", err)
	}
	for _, e := range edits {
		path := filepath.Join(dir, e.File)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading GoNB's source: %w", err)
		}
		if n := strings.Count(string(text), e.From); n != 1 {
			return fmt.Errorf("found %q %d times in GoNB's %s, expected it once: gonb.yaml is for another version",
				e.From, n, e.File)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.From, e.To, 1)), 0o600); err != nil {
			return fmt.Errorf("changing GoNB's source: %w", err)
		}
	}
	return nil
}

func (s *site) moduleDir(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = s.Root, append(s.env(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(out, &found) == nil && found.Error != "" {
		return "", fmt.Errorf("fetching %s: %s", module, found.Error)
	}
	if err != nil {
		return "", fmt.Errorf("fetching %s: %s", module, reason(err))
	}
	return found.Dir, nil
}

// copyFile copies a file from Go's module cache, writable.
func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return files.WriteBytes(to, text)
}

// Tab and Shift+Tab in a cell are answered by gopls, which GoNB starts with a kernel
// where it finds it. It is pinned in a module of its own, and takes a minute or more to
// build, so that nobody waits for it: it is built while JupyterLab is open.

// goplsModule is the folder of the module that pins gopls, below the checkout.
const goplsModule = "nasml/command/gopls"

func (s *site) completion() step {
	mod, _ := os.ReadFile(filepath.Join(s.Root, goplsModule, "go.mod")) // a missing one fails in the build
	sum, _ := os.ReadFile(filepath.Join(s.Root, goplsModule, "go.sum"))
	return step{
		name: "gopls", what: "building gopls, for completion in cells, into .nasml/gopls (a minute or more)",
		inputs:  append(s.places(), string(mod), string(sum), s.Go.GOVERSION, s.Go.GOROOT, "warm"),
		outputs: []string{s.path("gopls", "gopls")},
		needMB:  300, // most of it while it is built
		run:     s.buildGopls,
	}
}

// buildGopls builds gopls at low priority and lets it check a cell once, which fills its cache (18 s) before the first
// Tab. JupyterLab may be closed meanwhile.
func (s *site) buildGopls(ctx context.Context, j *job) error {
	fresh := s.path("gopls", "gopls.new")
	if err := os.MkdirAll(filepath.Dir(fresh), 0o755); err != nil {
		return fmt.Errorf("a folder for gopls: %w", err)
	}
	env := append(s.env(), "GOFLAGS="+kernelGoFlags, "GOWORK=off", "GOTOOLCHAIN=local")
	if err := j.guarded(ctx, filepath.Join(s.Root, goplsModule), env,
		"nice", "go", "build", "-o", fresh, "golang.org/x/tools/gopls"); err != nil {
		return err
	}
	if err := s.inCell(ctx, s.path("gopls", "cell"), func(dir string, env []string) error {
		return j.guarded(ctx, dir, env, "nice", fresh, "check", filepath.Join(dir, "main.go"))
	}, j); err != nil {
		return err
	}
	return os.Rename(fresh, s.path("gopls", "gopls"))
}

// bringCompletion builds gopls if necessary. A failure is reported and is not an error, because all else works.
func (s *site) bringCompletion(ctx context.Context, c console) {
	if s.done(s.completion()) {
		return
	}
	err := s.bring(ctx, c, []step{s.completion()})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.logf("no completion in cells: %v", err)
	default:
		c.logf("Tab and Shift+Tab complete and explain in cells from now on; restart a kernel that is running")
	}
}

// completionWhenUp builds gopls once a server answers. The returned function waits for the build.
func (s *site) completionWhenUp(ctx context.Context, c console, at netip.AddrPort) (wait func()) {
	var building sync.WaitGroup
	building.Go(func() {
		for ctx.Err() == nil {
			if connection, err := net.DialTimeout("tcp", at.String(), time.Second); err == nil {
				_ = connection.Close()
				s.bringCompletion(ctx, c)
				return
			}
			_ = files.Sleep(ctx, time.Second)
		}
	})
	return building.Wait
}
