package kernels

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// This file divides large programs. When XLA loads a program for a CPU it compares
// every two of a computation's operations (xla::ExecutionGraph), and many of its passes
// look at a computation as a whole: of a supernet with thousands of calls of kernels
// both take seconds. A computation of its own for some hundred calls ends this.

// divided says which programs are: those with more than few calls of functions, into
// parts of so many calls. One with many operands stays where it is, between parts.
var divided = struct{ few, part, many int }{600, 300, 500}

// statement is one of a function: what it defines and uses of the values of the
// function, and of which kind it is.
type statement struct {
	text          string
	defines, uses []string
	kind          string
}

// unit is what stands together: a part, of which a function is made, or statements of
// the main function itself.
type unit struct {
	calls      []int // statements
	own        bool  // a part
	statements []int // these and what they need, in their order
	in, out    []string
}

// division is a main function on the way to being divided.
type division struct {
	statements []statement
	types      map[string]string // of values
	definedBy  map[string]int    // statements
	units      []*unit
	unitOf     map[int]int // of statements that were placed
}

// Divide puts calls of a program's main function, and what is computed between them,
// into functions of their own that XLA leaves as they are, where there are many calls.
// The program computes the same bits: a product that another part needs is computed
// again there, since XLA rounds it with a sum that it is added to at once. It returns
// a program as it is where it is small, or is written as none that this reads.
func Divide(program string) string {
	if strings.Count(program, `"func.call"`) <= divided.few {
		return program
	}
	before, head, body, after, ok := cutMain(program)
	if !ok {
		return program
	}
	d, ok := readMain(head, body)
	if !ok {
		return program
	}
	d.plan()
	return before + head + "\n" + d.text() + after
}

// cutMain finds the head and the body of the main function.
func cutMain(program string) (before, head, body, after string, ok bool) {
	at := strings.Index(program, "  func.func @main(")
	if at < 0 {
		return "", "", "", "", false
	}
	head, rest, _ := strings.Cut(program[at:], "\n")
	body, after, ok = strings.Cut(rest, "\n  }\n")
	return program[:at], head, body, after, ok
}

var (
	tensor    = regexp.MustCompile(`tensor<[^>]*>`)
	argument  = regexp.MustCompile(`(%\w+): (tensor<[^>]*>)`)
	operation = regexp.MustCompile(`^    (?:(%\w+(?:, %\w+)*) = )?"(?:stablehlo|func)\.(\w+)"`)
)

// readMain reads the statements of the main function.
func readMain(head, body string) (*division, bool) {
	d := &division{types: map[string]string{}, definedBy: map[string]int{}, unitOf: map[int]int{}}
	for _, m := range argument.FindAllStringSubmatch(head, -1) {
		d.types[m[1]] = m[2]
	}
	for _, text := range statementsOf(body) {
		m := operation.FindStringSubmatch(text)
		at := strings.LastIndex(text, "-> ")
		if m == nil || at < 0 {
			return nil, false
		}
		s := statement{text: text, defines: values(m[1]), kind: m[2]}
		seen := map[string]bool{}
		for _, name := range values(text) {
			if d.types[name] != "" && !seen[name] { // others are of a region of its own
				s.uses, seen[name] = append(s.uses, name), true
			}
		}
		types := tensor.FindAllString(text[at:], -1)
		if len(types) != len(s.defines) {
			return nil, false
		}
		for i, name := range s.defines {
			d.types[name], d.definedBy[name] = types[i], len(d.statements)
		}
		d.statements = append(d.statements, s)
	}
	return d, len(d.statements) > 0 && d.statements[len(d.statements)-1].kind == "return"
}

// values are the names of values in a text, in their order.
func values(text string) (names []string) {
	for {
		_, rest, ok := strings.Cut(text, "%")
		if !ok {
			return names
		}
		end := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(rest)
		}
		names, text = append(names, "%"+rest[:end]), rest[end:]
	}
}

// statementsOf are the statements of a body: what begins at its margin with a value or
// an operation.
func statementsOf(body string) (all []string) {
	begin := 0
	for at := 0; at < len(body); {
		next := strings.IndexByte(body[at:], '\n') + 1
		if next == 0 {
			next = len(body) - at
		}
		at += next
		if strings.HasPrefix(body[at:], "    %") || strings.HasPrefix(body[at:], `    "`) || at == len(body) {
			all = append(all, strings.TrimSuffix(body[begin:at], "\n"))
			begin = at
		}
	}
	return all
}

// plan divides the calls, in their order, and gives every unit what it needs besides.
func (d *division) plan() {
	last := len(d.statements) - 1
	needed := d.needed(last)
	for i, s := range d.statements {
		switch {
		case i == last || s.kind == "call" && needed[i] && len(s.uses) > divided.many:
			d.units = append(d.units, &unit{calls: []int{i}})
		case s.kind == "call" && needed[i]:
			n := len(d.units)
			if n == 0 || !d.units[n-1].own || len(d.units[n-1].calls) == divided.part {
				d.units = append(d.units, &unit{own: true})
			}
			u := d.units[len(d.units)-1]
			u.calls = append(u.calls, i)
		}
	}
	for number, u := range d.units {
		d.place(number, u)
	}
	d.export()
}

// needed are the statements on which one depends, itself among them.
func (d *division) needed(root int) map[int]bool {
	all, open := map[int]bool{root: true}, []int{root}
	for len(open) > 0 {
		s := d.statements[open[len(open)-1]]
		open = open[:len(open)-1]
		for _, name := range s.uses {
			if i, ok := d.definedBy[name]; ok && !all[i] {
				all[i] = true
				open = append(open, i)
			}
		}
	}
	return all
}

// place gives a unit the statements that its calls need and that no unit has before
// it, and products again; what it takes from outside is in.
func (d *division) place(number int, u *unit) {
	own := map[int]bool{}
	for _, i := range u.calls {
		own[i], d.unitOf[i] = true, number
	}
	for open := slices.Clone(u.calls); len(open) > 0; {
		s := d.statements[open[len(open)-1]]
		open = open[:len(open)-1]
		for _, name := range s.uses {
			i, defined := d.definedBy[name]
			if !defined || d.elsewhere(i, number) {
				u.in = append(u.in, name)
			} else if !own[i] {
				own[i], open = true, append(open, i)
				if _, placed := d.unitOf[i]; !placed {
					d.unitOf[i] = number
				}
			}
		}
	}
	u.statements = slices.Sorted(maps.Keys(own))
	slices.Sort(u.in)
	u.in = slices.Compact(u.in)
}

// elsewhere says whether a unit takes from another one what a statement gives.
func (d *division) elsewhere(i, number int) bool {
	at, placed := d.unitOf[i]
	if !placed || at == number {
		return false
	}
	inMain := !d.units[at].own && !d.units[number].own
	return inMain || !d.isProduct(i)
}

// isProduct says whether a statement gives numbers that XLA may not round before it
// adds something: products, wherever they are put.
func (d *division) isProduct(i int) bool {
	switch s := d.statements[i]; s.kind {
	case "multiply":
		return true
	case "negate", "reshape", "broadcast_in_dim", "transpose", "slice", "convert":
		from, ok := d.definedBy[s.uses[0]]
		return ok && d.isProduct(from)
	}
	return false
}

// export says which values of a part the others take.
func (d *division) export() {
	wanted := map[string]bool{}
	for _, u := range d.units {
		for _, name := range u.in {
			wanted[name] = true
		}
	}
	for number, u := range d.units {
		for _, i := range u.statements {
			for _, name := range d.statements[i].defines {
				if wanted[name] && d.unitOf[i] == number {
					u.out = append(u.out, name)
				}
			}
		}
	}
}

// text is the main function's body, with the parts behind it.
func (d *division) text() string {
	var body, parts strings.Builder
	for number, u := range d.units {
		into := &body
		if u.own {
			into = &parts
			_, _ = fmt.Fprintf(&parts, "  func.func private @part_%d(%s) -> (%s) {\n", number, d.typed(u.in, true),
				d.typed(u.out, false))
		}
		for _, i := range u.statements {
			into.WriteString(d.statements[i].text + "\n")
		}
		if u.own {
			_, _ = fmt.Fprintf(&parts, "    \"stablehlo.return\"(%s) : (%s) -> ()\n  }\n", strings.Join(u.out, ", "),
				d.typed(u.out, false))
			_, _ = fmt.Fprintf(&body, "    %s = \"func.call\"(%s) {callee = @part_%d, "+
				"mhlo.frontend_attributes = {inlineable = \"false\"}} : (%s) -> (%s)\n", strings.Join(u.out, ", "),
				strings.Join(u.in, ", "), number, d.typed(u.in, false), d.typed(u.out, false))
		}
	}
	return body.String() + "  }\n" + parts.String()
}

// typed lists the types of values, with their names or without.
func (d *division) typed(names []string, named bool) string {
	list := make([]string, len(names))
	for i, name := range names {
		if list[i] = d.types[name]; named {
			list[i] = name + ": " + list[i]
		}
	}
	return strings.Join(list, ", ")
}
