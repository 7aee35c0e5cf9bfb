package kernels

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// This file divides large programs. When XLA loads a program for a CPU it compares every two of a computation's
// operations (xla::ExecutionGraph), and many of its passes look at a computation as a whole: of a supernet with
// thousands of calls of kernels both take seconds. A computation of its own for some hundred calls ends this.

// divided says that programs with more than few function calls are divided into parts of least to most calls.
var divided = struct{ few, least, most int }{600, 8, 300}

// statement is a statement of a function with the values it defines and uses. Its level counts computations between
// calls before it.
type statement struct {
	text          string
	defines, uses []string
	call          bool
	level, part   int // part: 0 where it stays
}

// division is a main function on the way to being divided.
type division struct {
	statements []*statement
	types      map[string]string     // of values
	definedBy  map[string]*statement // arguments: nil
	parts      [][]*statement
}

// Divide moves independent calls of a large program's main function into functions of their own, which XLA does not
// inline. What is computed between calls stays in the main function, where XLA fuses it as before: the program computes
// the same bits. Small programs, and programs it cannot read, are returned as they are.
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
	d.takeParts()
	return before + head + "\n" + d.text() + after
}

func cutMain(program string) (before, head, body, after string, ok bool) {
	at := strings.Index(program, "  func.func @main(")
	if at < 0 {
		return "", "", "", "", false
	}
	head, rest, _ := strings.Cut(program[at:], "\n")
	body, after, ok = strings.Cut(rest, "\n  }\n")
	return program[:at], head, body, after, ok
}

// tensorText is a tensor's type: tensor<2x3xf32>, tensor<4xcomplex<f32>>.
const tensorText = `tensor<(?:[^<>]|<[^<>]*>)*>`

var (
	tensor    = regexp.MustCompile(tensorText)
	argument  = regexp.MustCompile(`(%\w+): (` + tensorText + `)`)
	operation = regexp.MustCompile(`^    (?:(%\w+(?:, %\w+)*) = )?"(?:stablehlo|func)\.(\w+)"`)
)

func readMain(head, body string) (*division, bool) {
	d := &division{types: map[string]string{}, definedBy: map[string]*statement{}}
	for _, m := range argument.FindAllStringSubmatch(head, -1) {
		d.types[m[1]] = m[2]
	}
	for _, text := range statementsOf(body) {
		m := operation.FindStringSubmatch(text)
		at := strings.LastIndex(text, "-> ")
		if m == nil || at < 0 {
			return nil, false
		}
		s := &statement{text: text, defines: values(m[1]), call: m[2] == "call"}
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
			d.types[name], d.definedBy[name] = types[i], s
		}
		d.setLevel(s)
		d.statements = append(d.statements, s)
	}
	return d, strings.HasPrefix(d.statements[len(d.statements)-1].text, `    "stablehlo.return"`)
}

// setLevel gives a statement the level of what it uses, plus one if it computes from a call.
func (d *division) setLevel(s *statement) {
	for _, name := range s.uses {
		if from := d.definedBy[name]; from != nil && from.call && !s.call {
			s.level = max(s.level, from.level+1)
		} else if from != nil {
			s.level = max(s.level, from.level)
		}
	}
}

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

// takeParts sorts statements by level, calls last, and splits each level's calls into parts.
func (d *division) takeParts() {
	last := d.statements[len(d.statements)-1]
	last.level = len(d.statements)
	slices.SortStableFunc(d.statements, func(a, b *statement) int {
		after := map[bool]int{true: 1}
		return cmp.Or(a.level-b.level, after[a.call]-after[b.call])
	})
	byLevel := map[int][]*statement{}
	for _, s := range d.statements {
		if s.call {
			byLevel[s.level] = append(byLevel[s.level], s)
		}
	}
	for _, level := range slices.Sorted(maps.Keys(byLevel)) {
		for calls := range slices.Chunk(byLevel[level], divided.most) {
			if len(calls) < divided.least {
				continue
			}
			d.parts = append(d.parts, calls)
			for _, s := range calls {
				s.part = len(d.parts)
			}
		}
	}
}

func (d *division) text() string {
	wanted := map[string]bool{} // by a statement outside of the value's part
	for _, s := range d.statements {
		for _, name := range s.uses {
			if from := d.definedBy[name]; from != nil && from.part != s.part {
				wanted[name] = true
			}
		}
	}
	var body, parts strings.Builder
	for i, s := range d.statements {
		switch {
		case s.part == 0:
			body.WriteString(s.text + "\n")
		case i == 0 || d.statements[i-1].part != s.part:
			d.writePart(&body, &parts, s.part, wanted)
		}
	}
	return body.String() + "  }\n" + parts.String()
}

func (d *division) writePart(body, parts *strings.Builder, part int, wanted map[string]bool) {
	var in, out []string
	var text strings.Builder
	for _, s := range d.parts[part-1] {
		text.WriteString(s.text + "\n")
		for _, name := range s.uses {
			if from := d.definedBy[name]; (from == nil || from.part != part) && !slices.Contains(in, name) {
				in = append(in, name)
			}
		}
		for _, name := range s.defines {
			if wanted[name] {
				out = append(out, name)
			}
		}
	}
	if len(out) == 0 { // nothing needs it
		return
	}
	results, types := strings.Join(out, ", "), d.typed(out, false)
	_, _ = fmt.Fprintf(parts, "  func.func private @part_%d(%s) -> (%s) {\n%s", part, d.typed(in, true), types, &text)
	_, _ = fmt.Fprintf(parts, "    \"stablehlo.return\"(%s) : (%s) -> ()\n  }\n", results, types)
	_, _ = fmt.Fprintf(body, "    %s = \"func.call\"(%s) {callee = @part_%d, mhlo.frontend_attributes = "+
		"{inlineable = \"false\"}} : (%s) -> (%s)\n", results, strings.Join(in, ", "), part, d.typed(in, false), types)
}

func (d *division) typed(names []string, named bool) string {
	list := make([]string, len(names))
	for i, name := range names {
		if list[i] = d.types[name]; named {
			list[i] = name + ": " + list[i]
		}
	}
	return strings.Join(list, ", ")
}
