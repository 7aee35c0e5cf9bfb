package code

import (
	"bytes"
	"go/scanner"
	"go/token"
	"strings"
)

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
