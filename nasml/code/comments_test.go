package code

import (
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommentsOfFields(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", `package p

type Other struct{ A int } // not this one

// Params are some.
type Params struct {
	A, B int // two of
	// Above has a comment
	// of two lines.
	Above string // and one beside
	Bare  bool
	Other
}
`, parser.ParseComments)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"A": "two of", "B": "two of", "Above": "Above has a comment of two lines. and one beside", "Bare": "",
	}, commentsOf(file, "Params"))
	require.Nil(t, commentsOf(file, "Nothing"))
}

// The struct that the ledger is read into is one of this module.
func TestCommentsComeFromTheSourceInThisProgram(t *testing.T) {
	comments := Comments(reflect.TypeFor[Version]())
	require.Equal(t, "the hash in the keys of trials", comments["Version"])
	require.Equal(t, "the hash of the accepted source, which computes that version", comments["Source"])
	require.Nil(t, Comments(reflect.TypeFor[reflect.Method]()), "of another module")
}
