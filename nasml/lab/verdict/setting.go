package verdict

import (
	"fmt"
	"reflect"

	"github.com/nasml/lab/nasml/runs"
)

// Setting judges that a preset has a setting as the paper prints it: a number, a
// word, or a list of them. It needs no run.
func Setting[T any](name, source string, ours, paper T) runs.Claim {
	c := Claim(name, source)
	c.Paper, c.Ours = number(reflect.ValueOf(paper)), number(reflect.ValueOf(ours))
	c.Holds = runs.Judge(reflect.DeepEqual(ours, paper))
	c.Note = "a setting of the paper's scale"
	if !c.Ours.Valid() {
		c.Note += fmt.Sprintf(": %v; the paper has %v", ours, paper)
	}
	return c
}

// number is a value that is a number; any other does not apply.
func number(v reflect.Value) runs.Number {
	switch {
	case v.CanInt():
		return runs.Number(v.Int())
	case v.CanFloat():
		return runs.Number(v.Float())
	}
	return runs.None
}
