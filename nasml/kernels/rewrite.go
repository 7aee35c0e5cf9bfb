package kernels

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// signatures are the kernels by name: what arguments they take and, last, what
// they return. x is an array of the large side of a window, y one of the small
// side, k a kernel.
var signatures = map[string]string{
	prefix + "depthwise":        "xky",
	prefix + "depthwise_input":  "ykx",
	prefix + "depthwise_kernel": "xyk",
	prefix + "max_pool":         "xy",
	prefix + "max_pool_input":   "xyx",
	prefix + "mean_pool":        "xy",
	prefix + "mean_pool_input":  "yx",
	prefix + "batch_norm":       "xx",
	prefix + "batch_norm_input": "xxx",
}

// shape is the shape of an array of a signature.
func (w window) shape(side rune) []int {
	switch side {
	case 'x':
		return []int{w.images, w.height, w.width, w.channels}
	case 'y':
		return []int{w.images, w.rows(), w.columns(), w.channels}
	}
	return []int{w.k, w.k, w.channels}
}

// head is the head of a function that may have a kernel, in StableHLO's text.
var head = regexp.MustCompile(`(?m)^[ \t]*func\.func (?:private |public )?@(` + prefix + `[a-z_]*?)__stride(\d+)_dilation(\d+)(?:_\d+)?\(([^)]*)\) *-> *([^{]*)\{`) //nolint:lll // one expression

// Rewrite puts a call of a kernel in the place of the body of every function of
// a program, in StableHLO's text, that has one. have says which kernels there
// are. It returns the program as it is where there is nothing to replace, and
// where the program is divided between devices by XLA, which could not divide a
// kernel.
func Rewrite(program string, have func(kernel string) bool) string {
	if !Named(program) || strings.Contains(program, "sdy.mesh") {
		return program
	}
	var out strings.Builder
	rest := program
	for {
		m := head.FindStringSubmatchIndex(rest)
		if m == nil {
			out.WriteString(rest)
			return out.String()
		}
		part := func(i int) string { return rest[m[2*i]:m[2*i+1]] }
		end := m[1] + bodyEnd(rest[m[1]:])
		body := rest[m[1]:end]
		if have(part(1)) {
			if call := customCall(part(1), part(2), part(3), part(4), part(5)); call != "" {
				body = call
			}
		}
		out.WriteString(rest[:m[1]])
		out.WriteString(body)
		rest = rest[end:]
	}
}

// Named says whether a program has functions that may have a kernel.
func Named(program string) bool { return strings.Contains(program, "@"+prefix) }

// bodyEnd is where the brace closes that was open before text.
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

// customCall is the body of a function that calls a kernel; empty where the
// kernel is for other arrays.
func customCall(kernel, stride, dilation, parameters, result string) string {
	var names, types []string
	for _, p := range strings.Split(parameters, ",") {
		name, t, _ := strings.Cut(p, ":")
		names, types = append(names, strings.TrimSpace(name)), append(types, strings.TrimSpace(t))
	}
	out := strings.Trim(strings.TrimSpace(result), "()")
	var w window
	w.stride, _ = strconv.Atoi(stride)
	w.dilation, _ = strconv.Atoi(dilation)
	if !w.fits(signatures[kernel], append(types, out)) {
		return ""
	}
	return fmt.Sprintf("\n    %%k = \"stablehlo.custom_call\"(%s) {call_target_name = %q, api_version = 4 : i32, has_side_effect = false, "+ //nolint:lll // a line of the program
		"backend_config = {dilation = %d : i64, stride = %d : i64}} : (%s) -> %s\n    \"stablehlo.return\"(%%k) : (%s) -> ()\n  ", //nolint:lll // a line of the program
		strings.Join(names, ", "), kernel, w.dilation, w.stride, strings.Join(types, ", "), out, out)
}

// fits says whether arrays of these types are those of a signature: numbers of
// one type, in shapes that belong together.
func (w window) fits(signature string, types []string) bool {
	if len(types) != len(signature) || signature == "" || w.stride < 1 || w.dilation < 1 {
		return false
	}
	shapes := shapesOf(types)
	if shapes == nil {
		return false
	}
	for i, side := range signature {
		switch s := shapes[i]; {
		case side == 'x' && len(s) == 4:
			w.images, w.height, w.width, w.channels = s[0], s[1], s[2], s[3]
		case side == 'k':
			w.k = s[0]
		}
	}
	for i, side := range signature {
		if !slices.Equal(shapes[i], w.shape(side)) {
			return false
		}
	}
	return w.known(signature)
}

// known says whether the kernel of a signature is for this window: convolutions
// of some sizes, pools without dilation, and what has no small side without
// stride.
func (w window) known(signature string) bool {
	if strings.Contains(signature, "k") {
		return w.k == 3 || w.k == 5 || w.k == 7
	}
	return w.dilation == 1 && (w.stride == 1 || strings.Contains(signature, "y"))
}

// shapesOf reads types of arrays of one type of numbers; nil where they are
// anything else.
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
