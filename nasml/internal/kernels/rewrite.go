package kernels

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rewriting identifies what Rewrite and Divide do to a program: their sources.
func Rewriting() []byte { return []byte(rewriting + dividing) }

var (
	//go:embed rewrite.go
	rewriting string
	//go:embed divide.go
	dividing string
)

// signatures are the kernels' parameters and results. Those in parentheses may repeat.
var signatures = map[string]string{
	prefix + "depthwise":          "xk>y",
	prefix + "depthwise_input":    "yk>x",
	prefix + "depthwise_kernel":   "xy>k",
	prefix + "max_pool":           "x>y",
	prefix + "max_pool_input":     "xy>x",
	prefix + "mean_pool":          "x>y",
	prefix + "mean_pool_input":    "y>x",
	prefix + "normal":             "x>cc",
	prefix + "normal_input":       "xcc>x",
	prefix + "weighted":           "w(xc)>x",
	prefix + "weighted_gradient":  "wx(xc)>w(cg)",
	prefix + "rectified":          "ww(xc)>x",
	prefix + "rectified_gradient": "wwx(xc)>w(xc)",
	prefix + "stage":              "xckp>zdd",
	prefix + "stage_gradient":     "xckpzhzdd>xckp",
	prefix + "stage_input":        "xckpzhzdd>xc",
	prefix + "dense":              "xc(f)>(zdd)",
	prefix + "dense_gradient":     "xc(fzhzdd)>xc(f)",
	prefix + "dense_input":        "xc(fzhzdd)>xc",
	prefix + "linear":             "xc(f)>(zdd)",
	prefix + "linear_gradient":    "xc(fzhzdd)>xc(f)",
	prefix + "linear_input":       "xc(fzhzdd)>xc",
	prefix + "squares":            "a(a)>a",
	prefix + "momentum":           "a(aaa)>(aa)",
	prefix + "nesterov":           "a(aaa)>(aa)",
	prefix + "running":            "a(aaa)>(aa)",
	prefix + "sparse":             "aa>a",
	prefix + "sparse_gradient":    "aa>a",
	prefix + "sparse_descent":     "aaaa>a",
	prefix + "product":            "aa>a",
	prefix + "product_input":      "aa>a",
	prefix + "product_weights":    "aa>a",
}

// inPlace are kernels that may write their result over a parameter, and which.
var inPlace = map[string]int{prefix + "sparse_descent": 3}

// shape is the shape of an array of a signature: x on the large side of a window, y on the small one, z there behind a
// pointwise kernel p; k a depthwise kernel, f one with all channels; c and d scales and shifts before and behind p or
// f, g and h scales alone; w weights of maps. Arrays a are arraysFit's.
func (w window) shape(kind rune, maps int) []int {
	return map[rune][]int{
		'x': {w.images, w.height, w.width, w.channels}, 'y': {w.images, w.rows(), w.columns(), w.channels},
		'z': {w.images, w.rows(), w.columns(), w.wide}, 'k': {w.k, w.k, w.channels}, 'p': {w.channels, w.wide},
		'f': {w.k, w.k, w.channels, w.wide}, 'c': {2, w.channels}, 'd': {2, w.wide}, 'g': {1, w.channels},
		'h': {1, w.wide}, 'w': {1, maps},
	}[kind]
}

// head is the head of a function that may have a kernel, a line of StableHLO's text.
var head = regexp.MustCompile(`^func\.func (?:private |public )?@(` + prefix + `[a-z_]*?)__stride(\d+)_dilation(\d+)(?:_\d+)?\(([^)]*)\) *-> *([^{]*)\{`) //nolint:lll // one expression

// Rewrite replaces the body of every function that has a kernel with a call of it, in StableHLO's text. have says which
// kernels exist. Programs that XLA divides between devices are returned as they are, because it cannot divide a kernel.
func Rewrite(program string, have func(kernel string) bool) string {
	if !Named(program) || strings.Contains(program, "sdy.mesh") {
		return program
	}
	var out strings.Builder
	rest := program
	for {
		at := strings.Index(rest, "func.func ")
		if at < 0 {
			out.WriteString(rest)
			return out.String()
		}
		line, _, _ := strings.Cut(rest[at:], "\n") // an expression that looks for lines itself takes a second
		end := at + len(line)
		out.WriteString(rest[:end])
		if m := head.FindStringSubmatch(line); m != nil {
			body := end + bodyEnd(rest[end:])
			if call := customCall(m[1], m[2], m[3], m[4], m[5]); call != "" && have(m[1]) {
				out.WriteString(call)
				end = body
			}
		}
		rest = rest[end:]
	}
}

// Named reports whether a program has functions that may have a kernel.
func Named(program string) bool { return strings.Contains(program, "@"+prefix) }

func bodyEnd(text string) int {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// array is the type of an array of numbers for which there are kernels.
var array = regexp.MustCompile(`^tensor<((?:\d+x)+)(f32|f64)>$`)

// customCall is the body of a function that calls a kernel; "" if the kernel does not take these arrays.
func customCall(kernel, stride, dilation, parameters, results string) string {
	var names, types []string
	for _, p := range strings.Split(parameters, ",") {
		name, t, _ := strings.Cut(p, ":")
		names, types = append(names, strings.TrimSpace(name)), append(types, strings.TrimSpace(t))
	}
	var out, values []string
	for i, t := range strings.Split(strings.Trim(strings.TrimSpace(results), "()"), ",") {
		out, values = append(out, strings.TrimSpace(t)), append(values, fmt.Sprintf("%%k#%d", i))
	}
	var w window
	w.stride, _ = strconv.Atoi(stride)
	w.dilation, _ = strconv.Atoi(dilation)
	if !w.fits(kernel, types, out) {
		return ""
	}
	list, alias := strings.Join(out, ", "), ""
	if operand, ok := inPlace[kernel]; ok {
		alias = fmt.Sprintf("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], "+
			"operand_index = %d, operand_tuple_indices = []>], ", operand)
	}
	return fmt.Sprintf("\n    %%k:%d = \"stablehlo.custom_call\"(%s) {call_target_name = %q, api_version = 4 : i32, has_side_effect = false, %s"+ //nolint:lll // a line of the program
		"backend_config = {dilation = %d : i64, stride = %d : i64}} : (%s) -> (%s)\n    \"stablehlo.return\"(%s) : (%s) -> ()\n  ", //nolint:lll // a line of the program
		len(out), strings.Join(names, ", "), kernel, alias, w.dilation, w.stride, strings.Join(types, ", "), list,
		strings.Join(values, ", "), list)
}

// fits reports whether the types are those of the kernel's signature: one number type and matching shapes.
func (w window) fits(kernel string, types, results []string) bool {
	kinds, maps := expanded(signatures[kernel], len(types))
	all := append(slices.Clone(types), results...)
	if kinds == "" || len(kinds) != len(all) || w.stride < 1 || w.dilation < 1 {
		return false
	}
	shapes := shapesOf(all)
	if shapes == nil {
		return false
	}
	for i, kind := range kinds {
		w.take(kind, shapes[i])
	}
	for i, kind := range kinds {
		if kind != 'a' && !slices.Equal(shapes[i], w.shape(kind, maps)) {
			return false
		}
	}
	return w.known(kinds, maps) && (!strings.Contains(kinds, "a") || arraysFit(kernel, shapes, maps))
}

// axes are the axes of products' arrays, parameters and results: one letter, one length.
var axes = map[string]string{
	prefix + "sparse":          "sbj,sjvk,svbk",
	prefix + "sparse_gradient": "sbj,svbk,sjvk",
	prefix + "sparse_descent":  "1,sbj,svbk,sjvk,sjvk",
	prefix + "product":         "svbk,svlk,svbl",
	prefix + "product_input":   "svbl,svlk,svbk",
	prefix + "product_weights": "svbl,svbk,svlk",
}

// arraysFit checks the arrays of kernels without a window.
func arraysFit(kernel string, shapes [][]int, lists int) bool {
	first, in, out := shapes[0], shapes[1:], shapes[min(len(shapes), 1+3*lists):]
	switch strings.TrimPrefix(kernel, prefix) {
	case "squares":
		return slices.Equal(first, []int{1}) && slices.Equal(shapes[len(shapes)-1], first)
	case "momentum", "nesterov":
		for i := range lists {
			for _, s := range [][]int{in[3*i+1], in[3*i+2], out[2*i], out[2*i+1]} {
				if !slices.Equal(s, in[3*i]) {
					return false
				}
			}
		}
		return slices.Equal(first, []int{4})
	case "running":
		for i := range lists {
			mean := in[3*i+1]
			for _, s := range [][]int{in[3*i+2], out[2*i], out[2*i+1]} {
				if len(mean) != 1 || !slices.Equal(s, mean) || !slices.Equal(in[3*i], []int{2, mean[0]}) {
					return false
				}
			}
		}
		return slices.Equal(first, []int{2 + lists})
	}
	return axesFit(axes[kernel], shapes)
}

// axesFit reports whether arrays have the axes of a list.
func axesFit(list string, shapes [][]int) bool {
	length := map[rune]int{'1': 1}
	for i, names := range strings.Split(list, ",") {
		numbers := 1
		if len(names) != len(shapes[i]) {
			return false
		}
		for axis, name := range names {
			n := shapes[i][axis]
			if length[name] == 0 {
				length[name] = n
			}
			if numbers *= n; n != length[name] || n > 1<<24 || numbers > math.MaxInt32-16 {
				return false
			}
		}
	}
	return true
}

func (w *window) take(kind rune, s []int) {
	switch {
	case kind == 'x' && len(s) == 4:
		w.images, w.height, w.width, w.channels = s[0], s[1], s[2], s[3]
	case kind == 'k':
		w.k = s[0]
	case kind == 'p' && len(s) == 2:
		w.wide = s[1]
	case kind == 'f' && len(s) == 4:
		w.k, w.wide = s[0], s[3]
	}
}

// expanded repeats a signature's parentheses to match the number of parameters; "" if they cannot.
func expanded(signature string, parameters int) (kinds string, maps int) {
	in, out, _ := strings.Cut(signature, ">")
	repeat := func(s string) string {
		before, rest, ok := strings.Cut(s, "(")
		if !ok {
			return s
		}
		each, after, _ := strings.Cut(rest, ")")
		return before + strings.Repeat(each, maps) + after
	}
	if before, rest, ok := strings.Cut(in, "("); ok {
		each, _, _ := strings.Cut(rest, ")")
		maps = (parameters - len(before)) / len(each)
		if maps < 1 {
			return "", 0
		}
	}
	if in = repeat(in); len(in) != parameters {
		return "", 0
	}
	return in + repeat(out), maps
}

// known reports whether the kernel supports this window: depthwise sizes 3, 5 and 7, several dense kernels of 1 × 1
// only, pools without dilation, everything without a small side without stride.
func (w window) known(kinds string, maps int) bool {
	if strings.Contains(kinds, "k") {
		return w.k == 3 || w.k == 5 || w.k == 7
	}
	if strings.Contains(kinds, "f") && w.k != 1 && (w.k != 3 || maps > 1) {
		return false
	}
	return w.dilation == 1 && (w.stride == 1 || strings.Contains(kinds, "y"))
}

// shapesOf parses types of one number type; nil for anything else.
func shapesOf(types []string) [][]int {
	number, shapes := "", make([][]int, len(types))
	for i, text := range types {
		m := array.FindStringSubmatch(text)
		if m == nil || (number != "" && m[2] != number) {
			return nil
		}
		number = m[2]
		for d := range strings.SplitSeq(strings.TrimSuffix(m[1], "x"), "x") {
			n, err := strconv.Atoi(d)
			if err != nil || n < 1 || n > 1<<30 {
				return nil
			}
			shapes[i] = append(shapes[i], n)
		}
	}
	return shapes
}
