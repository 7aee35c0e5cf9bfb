// Command goimports is what the notebooks' kernel calls before it builds a cell:
// goimports, which also drops dot-imports that the cell does not use.
//
// GoNB repeats the imports of earlier cells in every cell and leaves it to goimports to
// drop those that are unused. The original keeps every dot-import, since the names that
// it brings cannot be told from the file. One cell with a dot-import would then break
// each later cell that does without, by "imported and not used".
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/imports"
)

func main() {
	for _, file := range os.Args[1:] {
		if file == "-w" { // the only flag that GoNB sets: the file is written in place
			continue
		}
		if err := mend(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func mend(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the cell's program: %w", err)
	}
	if source, err = imports.Process(file, source, nil); err != nil {
		return err // which begins with file, line and column
	}
	if source, err = dropDots(file, source); err != nil {
		return err
	}
	return os.WriteFile(file, source, 0o600)
}

// dropDots is the source without the dot-imports of which no name is used. A package
// that cannot be found keeps its import, so that the compiler says why.
func dropDots(file string, source []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{} // names that the file uses and does not declare
	for _, name := range parsed.Unresolved {
		open[name.Name] = true
	}
	dropped := false
	for _, spec := range append([]*ast.ImportSpec(nil), parsed.Imports...) {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || spec.Name == nil || spec.Name.Name != "." || usesAny(filepath.Dir(file), path, open) {
			continue
		}
		dropped = astutil.DeleteNamedImport(files, parsed, ".", path) || dropped
	}
	if !dropped {
		return source, nil
	}
	var out bytes.Buffer
	err = format.Node(&out, files, parsed)
	return out.Bytes(), err
}

// usesAny reports whether one of the names is exported by the package, as a module in dir sees it.
func usesAny(dir, path string, names map[string]bool) bool {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-json=Dir,GoFiles,CgoFiles", path)
	cmd.Dir = dir
	out, err := cmd.Output()
	var found struct {
		Dir               string
		GoFiles, CgoFiles []string
	}
	if err != nil || json.Unmarshal(out, &found) != nil {
		return true
	}
	for _, name := range append(found.GoFiles, found.CgoFiles...) {
		path := filepath.Join(found.Dir, name)
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || exportsAny(file, names) {
			return true
		}
	}
	return false
}

// exportsAny reports whether a file declares one of the names for other packages.
func exportsAny(file *ast.File, names map[string]bool) bool {
	used := func(name *ast.Ident) bool { return name.IsExported() && names[name.Name] }
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && used(decl.Name) {
				return true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				for _, name := range declared(spec) {
					if used(name) {
						return true
					}
				}
			}
		}
	}
	return false
}

func declared(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil
}
