package command

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nasml/lab/internal/files"
)

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
