package kernels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is a program with one function in StableHLO's text.
func program(name, parameters, result string) string {
	return fmt.Sprintf(`module @m {
  func.func private @%s(%s) -> %s {
    %%0 = "stablehlo.all_reduce"(%%a) ({
    ^bb0(%%x: tensor<f32>):
      "stablehlo.return"(%%x) : (tensor<f32>) -> ()
    }) {groups = {}} : (tensor<2x5x4x3xf32>) -> tensor<2x5x4x3xf32>
    "stablehlo.return"(%%0) : (tensor<2x5x4x3xf32>) -> ()
  }

  func.func @main(%%0: tensor<2x5x4x3xf32>) -> (tensor<2x5x4x3xf32>) {
    %%1 = "func.call"(%%0) {callee = @%s} : (tensor<2x5x4x3xf32>) -> tensor<2x5x4x3xf32>
    "stablehlo.return"(%%1) : (tensor<2x5x4x3xf32>) -> ()
  }
}
`, name, parameters, result, name)
}

func all(string) bool { return true }

func TestRewriteReplacesTheBody(t *testing.T) {
	p := program("nasml_depthwise__stride2_dilation1_3", "%a: tensor<2x5x4x3xf32>, %b: tensor<3x3x3xf32>",
		"(tensor<2x3x2x3xf32>)")
	got := Rewrite(p, all)
	require.Contains(t, got, `%k:1 = "stablehlo.custom_call"(%a, %b) {call_target_name = "nasml_depthwise", `+
		`api_version = 4 : i32, has_side_effect = false, backend_config = {dilation = 1 : i64, stride = 2 : i64}} : `+
		`(tensor<2x5x4x3xf32>, tensor<3x3x3xf32>) -> (tensor<2x3x2x3xf32>)`)
	require.Contains(t, got, `"stablehlo.return"(%k#0) : (tensor<2x3x2x3xf32>) -> ()`)
	require.NotContains(t, got, "all_reduce")
	require.Equal(t, p[strings.Index(p, "  func.func @main"):], got[strings.Index(got, "  func.func @main"):],
		"the rest stays")
	require.Equal(t, strings.Count(got, "{"), strings.Count(got, "}"))
	require.Equal(t, p, Rewrite(p, func(string) bool { return false }), "there is no such kernel")
	require.Equal(t, got, Rewrite(got, all), "once is enough")
}

const (
	stageIn = "%a: tensor<2x5x4x3xf32>, %b: tensor<2x3xf32>, %c: tensor<3x3x3xf32>, %d: tensor<3x7xf32>"
	sumIn   = "%a: tensor<1x2xf32>, %b: tensor<2x5x4x3xf32>, %c: tensor<2x3xf32>, %d: tensor<2x5x4x3xf32>, " +
		"%e: tensor<2x3xf32>"
)

// Kernels with several results, and those of any number of maps.
func TestRewriteOfSeveralResultsAndMaps(t *testing.T) {
	got := Rewrite(program("nasml_stage__stride2_dilation1", stageIn,
		"(tensor<2x3x2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>)"), all)
	require.Contains(t, got, `%k:3 = "stablehlo.custom_call"(%a, %b, %c, %d) {call_target_name = "nasml_stage"`)
	require.Contains(t, got, `"stablehlo.return"(%k#0, %k#1, %k#2) : (tensor<2x3x2x7xf32>, tensor<2x7xf32>, `+
		`tensor<2x7xf32>) -> ()`)
	got = Rewrite(program("nasml_weighted__stride1_dilation1", sumIn, "tensor<2x5x4x3xf32>"), all)
	require.Contains(t, got, `%k:1 = "stablehlo.custom_call"(%a, %b, %c, %d, %e)`)
}

// Of convolutions with all channels several take the kernel's place together where
// they are 1 × 1 and of one width.
func TestRewriteOfSeveralConvolutions(t *testing.T) {
	const x = "%a: tensor<2x5x4x3xf32>, %b: tensor<2x3xf32>, "
	const z = "tensor<2x5x4x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>"
	of := func(kernels string) string {
		return Rewrite(program("nasml_linear__stride1_dilation1", x+kernels, "("+z+", "+z+")"), all)
	}
	got := of("%c: tensor<1x1x3x7xf32>, %d: tensor<1x1x3x7xf32>")
	require.Contains(t, got, `%k:6 = "stablehlo.custom_call"(%a, %b, %c, %d) {call_target_name = "nasml_linear"`)
	for what, kernels := range map[string]string{
		"3 × 3":  "%c: tensor<3x3x3x7xf32>, %d: tensor<3x3x3x7xf32>",
		"widths": "%c: tensor<1x1x3x7xf32>, %d: tensor<1x1x3x8xf32>",
		"sizes":  "%c: tensor<1x1x3x7xf32>, %d: tensor<3x3x3x7xf32>",
	} {
		require.NotContains(t, of(kernels), "custom_call", what)
	}
}

// Kernels without a window take arrays that belong together, and no others.
func TestRewriteOfArraysWithoutAWindow(t *testing.T) {
	for kernel, dims := range map[string]string{ // parameters, results
		"squares":         "1 2x3 5 4x1x7>1",
		"momentum":        "4 2x3 2x3 2x3 5 5 5>2x3 2x3 5 5",
		"nesterov":        "4 2x3 2x3 2x3>2x3 2x3",
		"running":         "4 2x3 3 3 2x5 5 5>3 3 5 5",
		"sparse":          "2x3x5 2x5x7x4>2x7x3x4",
		"sparse_gradient": "2x3x5 2x7x3x4>2x5x7x4",
		"sparse_descent":  "1 2x3x5 2x7x3x4 2x5x7x4>2x5x7x4",
		"product":         "2x3x5x7 2x3x4x7>2x3x5x4",
		"product_input":   "2x3x5x4 2x3x4x7>2x3x5x7",
		"product_weights": "2x3x5x4 2x3x5x7>2x3x4x7",
	} {
		require.NotEmpty(t, signatures["nasml_"+kernel])
		in, out, _ := strings.Cut(dims, ">")
		arrays, parameters := strings.Fields(in+" "+out), len(strings.Fields(in))
		of := func() string {
			var names, results []string
			for i, d := range arrays {
				if text := "tensor<" + d + "xf32>"; i < parameters {
					names = append(names, fmt.Sprintf("%%p%d: %s", i, text))
				} else {
					results = append(results, text)
				}
			}
			return Rewrite(program("nasml_"+kernel+"__stride1_dilation1", strings.Join(names, ", "),
				"("+strings.Join(results, ", ")+")"), all)
		}
		require.Contains(t, of(), "custom_call", kernel)
		for i, d := range arrays {
			if kernel == "squares" && 0 < i && i < parameters {
				continue // any
			}
			at := strings.LastIndex(d, "x") + 1
			for _, other := range []string{d[:at] + "9", "1x" + d} {
				arrays[i] = other
				require.NotContains(t, of(), "custom_call", "%s, %s for %s", kernel, other, d)
			}
			arrays[i] = d
		}
	}
	large := program("nasml_sparse__stride1_dilation1", "%a: tensor<1x60000x784xf32>, %b: tensor<1x784x1x64xf32>",
		"tensor<1x1x60000x64xf32>")
	require.Contains(t, Rewrite(large, all), "custom_call")
	large = strings.ReplaceAll(large, "60000", "6000000")
	require.NotContains(t, Rewrite(large, all), "custom_call", "places are counted in 32 bits")
}

// A function of an agreed name with another signature stays as it is written.
func TestRewriteLeavesOtherSignatures(t *testing.T) {
	const x, k, y = "%a: tensor<2x5x4x3xf32>", "%b: tensor<3x3x3xf32>", "tensor<2x5x4x3xf32>"
	for what, p := range map[string]string{
		"another kernel":         program("nasml_other__stride1_dilation1", x+", "+k, y),
		"a name without numbers": program("nasml_depthwise", x+", "+k, y),
		"too few":                program("nasml_depthwise__stride1_dilation1", x, y),
		"too many":               program("nasml_depthwise__stride1_dilation1", x+", "+k+", %c: tensor<f32>", y),
		"two results":            program("nasml_depthwise__stride1_dilation1", x+", "+k, "("+y+", "+y+")"),
		"two types":              program("nasml_depthwise__stride1_dilation1", x+", %b: tensor<3x3x3xf64>", y),
		"bfloat16": strings.ReplaceAll(program("nasml_depthwise__stride1_dilation1", x+", "+k, y),
			"f32", "bf16"),
		"other channels": program("nasml_depthwise__stride1_dilation1", x+", %b: tensor<3x3x4xf32>", y),
		"k = 9":          program("nasml_depthwise__stride1_dilation1", x+", %b: tensor<9x9x3xf32>", y),
		"k = 4":          program("nasml_depthwise__stride1_dilation1", x+", %b: tensor<4x4x3xf32>", y),
		"another stride": program("nasml_depthwise__stride2_dilation1", x+", "+k, y),
		"stride 0":       program("nasml_depthwise__stride0_dilation1", x+", "+k, y),
		"no map": program("nasml_max_pool__stride1_dilation1", "%a: tensor<5x4x3xf32>",
			"tensor<5x4x3xf32>"),
		"a dilated pool": program("nasml_max_pool__stride1_dilation2", x, y),
		"an unknown size": program("nasml_max_pool__stride1_dilation1", "%a: tensor<?x5x4x3xf32>",
			"tensor<?x5x4x3xf32>"),
		"a result less": program("nasml_stage__stride2_dilation1", stageIn,
			"(tensor<2x3x2x7xf32>, tensor<2x7xf32>)"),
		"scales of others": program("nasml_stage__stride2_dilation1", stageIn,
			"(tensor<2x3x2x7xf32>, tensor<2x3xf32>, tensor<2x7xf32>)"),
		"no map at all": program("nasml_weighted__stride1_dilation1", "%a: tensor<1x2xf32>",
			"tensor<2x5x4x3xf32>"),
		"weights for three": program("nasml_weighted__stride1_dilation1",
			strings.Replace(sumIn, "1x2", "1x3", 1), y),
		"a map without scales": program("nasml_weighted__stride1_dilation1",
			sumIn+", "+"%f: tensor<2x5x4x3xf32>", y),
		"divided by XLA":  "sdy.mesh @m\n" + program("nasml_max_pool__stride1_dilation1", x, y),
		"nothing of ours": program("main2", x, y),
	} {
		require.Equal(t, p, Rewrite(p, all), what)
	}
	p := program("nasml_max_pool__stride1_dilation1", x, y)
	require.NotEqual(t, p, Rewrite(p, all), "this one is replaced")
}
