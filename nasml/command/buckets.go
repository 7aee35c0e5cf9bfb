package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nasml/lab/nasml/runs"
)

// The services' own libraries are half of what a build of everything takes, and of a program's packages. So this
// program has none of them: where the store is a bucket, it builds itself once more with them, and hands the call over.

const bucketTag = "buckets"

// linked says that this program knows buckets: it must not hand over again.
var linked bool

func inBucket() bool { return strings.Contains(os.Getenv("NASML_STORE"), "://") }

// withStore are the verbs that open the store.
var withStore = []string{"run", "status", "slurm", "list", "show", "store", "claims", "gallery"}

func handOver(verb string) bool {
	verb, _, _ = strings.Cut(verb, " ")
	scheme, _, _ := strings.Cut(os.Getenv("NASML_STORE"), "://")
	return !linked && inBucket() && slices.Contains(withStore, verb) && !runs.KnowsMedium(scheme)
}

// runWithBuckets replaces this process with the program that knows buckets. It returns only on failure.
func runWithBuckets(ctx context.Context, c console, args []string) error {
	s, err := openSite(ctx)
	if err != nil {
		return fmt.Errorf("the store is a bucket, which takes another program: %w", err)
	}
	program, err := s.buildBuckets(ctx, c)
	if err != nil {
		return err
	}
	err = syscall.Exec(program, append([]string{program}, args...), os.Environ())
	return fmt.Errorf("starting %s: %w", program, err)
}

func (s *site) buildBuckets(ctx context.Context, c console) (string, error) {
	program := s.path("buckets", "nasml")
	if !exists(program) {
		c.logf("set-up: building the program that knows buckets (up to two minutes)")
	}
	lock, err := s.lock(ctx, c)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	return program, buildProgram(ctx, s.Root, program, true)
}

// buildProgram builds this command. A running process keeps the old one.
func buildProgram(ctx context.Context, root, program string, buckets bool) error {
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return fmt.Errorf("a folder for the program: %w", err)
	}
	fresh := program + ".new"
	_ = os.Remove(fresh)        // of a build that broke off
	_ = os.Link(program, fresh) // go links nothing where what is there is up to date
	defer os.Remove(fresh)
	args := []string{"build", "-o", fresh}
	if buckets {
		args = append(args, "-tags="+bucketTag)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./nasml/cmd/nasml")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, program)
}
