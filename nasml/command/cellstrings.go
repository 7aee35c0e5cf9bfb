package command

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/nasml/lab/nasml/catalog"
)

// stringsCmd is what the kernel asks when Tab is pressed within a string, of which gopls knows nothing.
type stringsCmd struct {
	Cell string `arg:"" help:"Text of a cell up to the cursor."`
}

func (v *stringsCmd) Run(ctx context.Context, c console) error {
	for _, name := range cellStrings(ctx, v.Cell) {
		if _, err := fmt.Fprintln(c.Out, name); err != nil {
			return err
		}
	}
	return nil
}

// cellStrings returns the completions of the string at the end of a cell: the values of its field in the figures that
// the cell names, or else in all.
func cellStrings(ctx context.Context, cell string) []string {
	field, begun := stringField(cell)
	if field == "" {
		return nil
	}
	figures := slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool {
		name := regexp.QuoteMeta(strings.NewReplacer("/", ".", "-", "").Replace(e.ID))
		return !regexp.MustCompile(`(?i)\b` + name + `(quick|paper|large|params)?\b`).MatchString(cell)
	})
	if len(figures) == 0 {
		figures = catalog.All()
	}
	var names []string
	for _, e := range figures {
		names = append(names, e.Choices(ctx, field)...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !strings.HasPrefix(name, begun) })
}

var notGo = regexp.MustCompile(`(?m)^[ \t]*[%!].*$`)

// stringField returns the field that the string at the end of a cell is assigned to, and the string so far; "" if there
// is none.
func stringField(cell string) (field, begun string) {
	text := strings.Replace("package cell\n"+cell+`"`, "\n%%", "\nfunc main() {", 1)
	text = notGo.ReplaceAllString(text, "")
	last, open := endOf(text)
	if len(last) < 2 || last[0] != '"' {
		return "", ""
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", text+open, parser.SkipObjectResolution) // the rest may be wrong
	if file == nil {
		return "", ""
	}
	end := file.FileStart + token.Pos(len(text))
	path, _ := astutil.PathEnclosingInterval(file, end-token.Pos(len(last)), end)
	for _, node := range path {
		switch node := node.(type) {
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok {
				return key.Name, last[1 : len(last)-1]
			}
		case *ast.AssignStmt:
			at := slices.IndexFunc(node.Rhs, func(e ast.Expr) bool { return e.Pos() < end && end <= e.End() })
			if at < 0 || at >= len(node.Lhs) {
				return "", ""
			}
			if to, ok := node.Lhs[at].(*ast.SelectorExpr); ok {
				return to.Sel.Name, last[1 : len(last)-1]
			}
		case *ast.BlockStmt, *ast.IndexExpr:
			return "", ""
		}
	}
	return "", ""
}

// endOf returns the string that Go text ends with, and the closing brackets that it lacks.
func endOf(text string) (last, open string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", -1, len(text)), []byte(text), nil, 0)
	closing := map[token.Token]string{token.LPAREN: ")", token.LBRACK: "]", token.LBRACE: "}"}
	for {
		pos, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return last, open
		case token.LPAREN, token.LBRACK, token.LBRACE:
			open = closing[tok] + open
		case token.RPAREN, token.RBRACK, token.RBRACE:
			open = open[min(1, len(open)):]
		case token.STRING:
			if last = ""; files.Position(pos).Offset+len(literal) == len(text) {
				last = literal
			}
		}
	}
}
