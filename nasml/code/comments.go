package code

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strings"

	"github.com/nasml/lab/nasml"
)

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
