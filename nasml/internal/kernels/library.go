package kernels

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/internal/files"
)

//go:embed c
var sources embed.FS

// Env set to "off" disables the kernels. The name of a variant, such as "avx2", selects the kernels of that processor
// type.
const Env = "NASML_KERNELS"

// variant is one kind of processor for which the loops are compiled.
type variant struct {
	isa   string
	width int // bytes of a vector
	flags []string
}

// variants are the processor types of this architecture. NEON is standard on arm64, as SSE2 is on amd64.
func variants() []variant {
	plain := variant{"plain", 16, nil}
	if runtime.GOARCH != "amd64" {
		return []variant{plain}
	}
	return []variant{plain,
		{"avx2", 32, []string{"-mavx2", "-mfma"}},
		{"avx512", 64, []string{"-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma"}},
	}
}

// What all is compiled with, and linked.
var (
	common = []string{"-std=gnu11", "-O3", "-fPIC", "-pthread", "-Wno-psabi", "-c"}
	linked = []string{"-shared", "-pthread"}
)

func (v variant) defines() []string {
	return []string{"-DISA=" + v.isa, fmt.Sprintf("-DWIDTH=%d", v.width)}
}

// FileName is the library's name; it depends on source and architecture.
func FileName() string {
	h := sha256.New()
	_ = fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error { // what is embedded can be read
		if err == nil && !d.IsDir() {
			data, _ := sources.ReadFile(path)
			_, _ = fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
		}
		return nil
	})
	_, _ = fmt.Fprint(h, variants(), common, linked)
	return fmt.Sprintf("nasml_kernels-%s-%s.so", runtime.GOARCH, hex.EncodeToString(h.Sum(nil))[:16])
}

// Library is the path of the kernels' library: in one of the folders, else in the user's cache folder, where it is
// built if necessary (15 s). One that others may have written is not used; warn is told.
func Library(warn func(format string, args ...any), folders ...string) (string, error) {
	for _, dir := range folders {
		path := filepath.Join(dir, FileName())
		err := files.Private(dir, path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, files.ErrNotPrivate) {
			warn("these kernels are not used: %v", err)
		}
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the kernels: %w", err)
	}
	own := filepath.Join(user, "nasml", "kernels", FileName())
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return "", fmt.Errorf("no folder for the kernels: %w", err)
	}
	if err := files.Private(filepath.Dir(own)); err != nil {
		return "", err
	}
	if files.Private(own) == nil {
		return own, nil
	}
	return own, Build(context.Background(), own)
}

// Build compiles the library atomically with $CC or cc.
func Build(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("building the kernels: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "new-")
	if err != nil {
		return fmt.Errorf("building the kernels: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return fmt.Errorf("building the kernels: %w", err)
	}
	objects, err := compile(ctx, dir)
	if err == nil {
		err = cc(ctx, dir, slices.Concat(linked, []string{"-o", "library.so"}, objects, []string{"-lm"})...)
	}
	built := filepath.Join(dir, "library.so")
	if err == nil {
		err = os.Chmod(built, 0o755) // whatever the linker made of umask: it is to be Private
	}
	if err == nil {
		err = os.Rename(built, path)
	}
	return err
}

func compile(ctx context.Context, dir string) ([]string, error) {
	calls := [][]string{slices.Concat(common, []string{"-o", "kernels.o", "c/kernels.c"})}
	objects := []string{"kernels.o"}
	for _, v := range variants() {
		object := v.isa + ".o"
		args := slices.Concat(common, v.flags, v.defines(), []string{"-o", object, "c/loops.c"})
		calls, objects = append(calls, args), append(objects, object)
	}
	failed := make([]error, len(calls))
	var wait sync.WaitGroup
	for i, args := range calls {
		wait.Go(func() { failed[i] = cc(ctx, dir, args...) })
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil { // the others say the same
			return nil, err
		}
	}
	return objects, nil
}

func compiler() []string {
	if set := strings.Fields(os.Getenv("CC")); len(set) > 0 {
		return set
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name}
		}
	}
	return []string{"cc"}
}

func cc(ctx context.Context, dir string, args ...string) error {
	compiler := compiler()
	cmd := exec.CommandContext(ctx, compiler[0], append(compiler[1:], args...)...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return fmt.Errorf("building the kernels by %s: %w: %s", compiler[0], err, line)
	}
	return nil
}
