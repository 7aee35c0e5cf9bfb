package code

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml"
)

// filesPackage is the package that locks files and writes them whole: everything that is
// kept goes through it, and nothing is computed there, so that no version has it.
const filesPackage = "github.com/nasml/lab/internal/files"

// here is the path of the packages below nasml.
const here = "github.com/nasml/lab/nasml/"

// sourceOf is the hash of some packages: of themselves, of all that they import of this module, and of the versions of
// the modules that compute, as far as one of them imports such a module. Files count by their tokens, not by their
// names, so that neither a comment nor a new name of a file makes another source.
//
// own are files of another module, nil for none: all Go files in it, in any folder.
func sourceOf(source fs.FS, modules map[string]string, rooms []string, own fs.FS) (string, error) {
	packages := map[string]*room{}
	if own != nil {
		r, err := readOwn(source, own, packages)
		if err != nil {
			return "", err
		}
		packages["own"] = r
	}
	for _, path := range rooms {
		if err := gather(source, path, packages); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(h, "package %s\n%s\n", path, strings.Join(packages[path].files, "\n"))
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if uses(packages, module) {
			fmt.Fprintf(h, "module %s %s\n", module, modules[module])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// room is a package: the hashes of its files, sorted, and what it imports.
type room struct {
	files   []string
	imports map[string]bool
}

// gather reads a package and what it imports of this module.
func gather(source fs.FS, at string, found map[string]*room) error {
	if found[at] != nil {
		return nil
	}
	r, err := roomOf(source, at)
	if err != nil {
		return err
	}
	found[at] = r
	for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
		if below, ok := strings.CutPrefix(imported, here); ok {
			if err := gather(source, below, found); err != nil {
				return fmt.Errorf("%s imports %w", at, err)
			}
		} else if strings.HasPrefix(imported+"/", "github.com/nasml/lab/") && imported != filesPackage {
			return fmt.Errorf("%s imports %s, which cannot compute: a picture would be part of the version",
				at, imported)
		}
	}
	return nil
}

// readOwn reads files of another module, and what they import of this one. A figure of another module may have all in
// one package, so that packages that draw, judge and store are passed over; those compute nothing.
func readOwn(source, own fs.FS, found map[string]*room) (*room, error) {
	r := &room{imports: map[string]bool{}}
	err := fs.WalkDir(own, ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(at) {
			return err
		}
		text, err := fs.ReadFile(own, at)
		if err != nil {
			return err
		}
		return r.add(at, text)
	})
	if err != nil {
		return nil, fmt.Errorf("the own sources: %w", err)
	}
	if len(r.files) == 0 {
		return nil, errors.New("the own sources: there is no Go file")
	}
	slices.Sort(r.files)
	for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
		below, ours := strings.CutPrefix(imported, here)
		if !ours || slices.Contains(outside, below) {
			continue
		}
		if err := gather(source, below, found); err != nil {
			return nil, fmt.Errorf("the own sources import %w", err)
		}
	}
	return r, nil
}

// outside are the packages that compute no number of a trial.
var outside = []string{
	"catalog", "code", "command", "lab", "lab/verdict", "notebook", "runs", "study", "backend", "data",
}

// builtIn caches the packages of this program by path: kinds share most of them.
var builtIn sync.Map

// roomOf is readRoom, once for a package in this program.
func roomOf(source fs.FS, at string) (*room, error) {
	if source != fs.FS(nasml.Sources) {
		return readRoom(source, at)
	}
	read, _ := builtIn.LoadOrStore(at, sync.OnceValues(func() (*room, error) { return readRoom(source, at) }))
	return read.(func() (*room, error))()
}

// readRoom reads the Go and C files of a package, those of all platforms, without
// its tests. C that Go's own build is not to see lies in a folder named c.
func readRoom(source fs.FS, at string) (*room, error) {
	r := &room{imports: map[string]bool{}}
	if err := r.read(source, at); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("package %s: there is no Go file", at)
	}
	if err := r.read(source, path.Join(at, "c")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(r.files)
	return r, nil
}

func (r *room) read(source fs.FS, at string) error {
	entries, err := fs.ReadDir(source, at)
	if err != nil {
		return fmt.Errorf("package %s: %w", at, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !isCode(name) {
			continue
		}
		text, err := fs.ReadFile(source, path.Join(at, name))
		if err != nil {
			return fmt.Errorf("package %s: %w", at, err)
		}
		if err := r.add(path.Join(at, name), text); err != nil {
			return err
		}
	}
	return nil
}

// isCode reports whether a file is source that is built into a program: Go without tests, or C.
func isCode(name string) bool {
	switch path.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".c", ".h":
		return true
	}
	return false
}

func (r *room) add(name string, text []byte) error {
	if path.Ext(name) != ".go" {
		r.files = append(r.files, digest(text))
		return nil
	}
	tokens, err := goTokens(name, text)
	if err != nil {
		return fmt.Errorf("version of the code: %w", err)
	}
	r.files = append(r.files, digest(tokens))
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("version of the code: %w", err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		r.imports[imported] = true
	}
	return nil
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// plugin is the distribution of XLA's CPU plugin, which is loaded by go-xla and imported by nobody.
const plugin, loader = "xla-cpu-pjrt", "github.com/gomlx/go-xla"

// uses reports whether a package imports something of a module. GoMLX may run on XLA wherever it is used.
func uses(packages map[string]*room, module string) bool {
	if module == plugin || module == loader {
		module = "github.com/gomlx"
	}
	for _, r := range packages {
		for imported := range r.imports {
			if imported == module || strings.HasPrefix(imported, module+"/") {
				return true
			}
		}
	}
	return false
}

// goTokens returns the tokens of a Go file, one a line. A comma or semicolon before a closing bracket says nothing in
// Go and is left out: where lines are broken decides whether there is one.
func goTokens(path string, text []byte) ([]byte, error) {
	var s scanner.Scanner
	var errs scanner.ErrorList
	files := token.NewFileSet()
	s.Init(files.AddFile(path, -1, len(text)), text, errs.Add, scanner.ScanComments)
	var out bytes.Buffer
	held := "" // a comma or semicolon that waits for what follows it
	for {
		_, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return out.Bytes(), errs.Err()
		case token.COMMENT:
			if strings.HasPrefix(literal, "//go:") {
				out.WriteString(literal + "\n")
			}
			continue
		case token.COMMA, token.SEMICOLON:
			out.WriteString(held)
			held = tok.String() + "\n"
			continue
		case token.RPAREN, token.RBRACE, token.RBRACK:
			held = ""
		}
		out.WriteString(held)
		out.WriteString(tok.String())
		out.WriteByte(' ')
		out.WriteString(literal)
		out.WriteByte('\n')
		held = ""
	}
}

// Comments are what the source in this program says of the fields of a struct,
// each in one line, by the field's name. A type of another module has none.
func Comments(t reflect.Type) map[string]string {
	dir, ours := strings.CutPrefix(t.PkgPath(), here)
	if !ours {
		return nil
	}
	files, _ := fs.Glob(nasml.Sources, path.Join(dir, "*.go")) // the pattern is a good one
	for _, file := range files {
		text, err := fs.ReadFile(nasml.Sources, file)
		if err != nil || !strings.Contains(string(text), "type "+t.Name()+" struct") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		if err != nil {
			continue
		}
		if found := commentsOf(parsed, t.Name()); found != nil {
			return found
		}
	}
	return nil
}

// commentsOf are the comments of the struct of that name, nil where the file has none.
func commentsOf(file *ast.File, name string) map[string]string {
	var found map[string]string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			found = map[string]string{}
			for _, field := range s.Fields.List {
				text := oneLine(field.Doc.Text() + " " + field.Comment.Text())
				for _, id := range field.Names {
					found[id.Name] = text
				}
			}
		}
		return false
	})
	return found
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
