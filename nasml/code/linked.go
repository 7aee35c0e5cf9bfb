package code

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/types"
	"github.com/gomlx/gomlx/support/exceptions"
	"gonum.org/v1/gonum/floats"
)

// landmarks are a function of every Go module that computes, by which a program finds
// the folder that the module was built from.
var landmarks = map[string]any{
	"github.com/gomlx/compute": dtypes.FromGoType,
	"github.com/gomlx/go-xla":  types.FFTTypeString,
	"github.com/gomlx/gomlx":   exceptions.Panicf,
	"gonum.org/v1/gonum":       floats.Sum,
}

// versionOf is what a module counts as that a program was built with: its version where that says what the source is,
// which Go attests by a sum. The source of a folder of vendored modules, of a workspace or of a local replacement may
// be any, so that it counts itself.
func versionOf(m *debug.Module) string {
	path := m.Path
	if m.Replace != nil {
		m = m.Replace
	}
	switch {
	case m.Sum != "" && m.Path != path:
		return m.Path + " " + m.Version
	case m.Sum != "":
		return m.Version
	}
	sum, err := linkedSource(path)
	if err != nil { // a program is not worse than itself
		if sum, err = programSum(); err != nil {
			panic(fmt.Errorf("code: nothing says what %s is that this program was built with: %w", path, err))
		}
	}
	return "source " + sum
}

// linkedSource is the hash of the source of a module that is linked in. It is an error
// if that is not there, or was written after the program.
func linkedSource(module string) (string, error) {
	dir, err := folderOf(module, landmarks[module])
	if err != nil {
		return "", err
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	return hashOf(dir, info.ModTime())
}

// folderOf is the root of the module of a function, at the place where it was built.
func folderOf(module string, function any) (string, error) {
	if function == nil {
		return "", fmt.Errorf("no function of %s is known", module)
	}
	f := runtime.FuncForPC(reflect.ValueOf(function).Pointer())
	file, _ := f.FileLine(f.Entry())
	dir := filepath.ToSlash(filepath.Dir(file))
	slash := strings.LastIndex(f.Name(), "/")
	name, _, _ := strings.Cut(f.Name()[slash+1:], ".")
	below := strings.TrimPrefix(f.Name()[:slash+1]+name, module)
	root, ok := strings.CutSuffix(dir, below)
	if !ok || !filepath.IsAbs(root) {
		return "", fmt.Errorf("%s was built from %s, which is no folder of %s", f.Name(), file, module)
	}
	return root, nil
}

// errNewer says that a source may not be the one that was built.
var errNewer = errors.New("it was written after the program was built")

// hashOf is the hash of all source below a folder, none of which may have been written after the program was built.
func hashOf(dir string, built time.Time) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(path) && filepath.Ext(path) != ".s" {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.ModTime().After(built) {
			return fmt.Errorf("%s: %w", path, errNewer)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(h, "%s %s\n", filepath.ToSlash(name), digest(text))
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

func programSum() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
