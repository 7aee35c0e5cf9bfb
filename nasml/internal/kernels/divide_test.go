package kernels_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// called is a program of calls with a product and a sum between them.
const called = `module @m {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %0 = "func.call"(%arg0) { callee = @f } : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.multiply"(%0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2, %3 = "func.call"(%1) { callee = @g } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
    %4 = "func.call"(%2) { callee = @f } : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.add"(%2, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = "func.call"(%5) { callee = @f } : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "stablehlo.reduce"(%5, %3) ({
        ^bb0(%8: tensor<f32>, %9: tensor<f32>):
          %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%10) : (tensor<f32>) -> ()
      }) { dimensions = array<i64: 0> } : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %11 = "func.call"(%6, %5, %2, %arg1) { callee = @h } : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
        tensor<4xf32>) -> tensor<4xf32>
    %12 = "func.call"(%11) { callee = @f } : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%12, %7) : (tensor<4xf32>, tensor<f32>) -> ()
  }

  func.func private @f(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
  }
}
`

func TestDivideTakesPartsOut(t *testing.T) {
	require.Equal(t, called, kernels.Divide(called), "it has few calls")
	kernels.DivideFrom(t, 2, 2, 2)
	got := kernels.Divide(called)
	lines := func(function string) []string {
		_, rest, ok := strings.Cut(got, "  func.func "+function+"(")
		require.True(t, ok, got)
		body, _, _ := strings.Cut(rest, "\n  }\n")
		return regexp.MustCompile(`(?m)^    %[\w, %]+ = "[a-z]+\.\w+"`).FindAllString(body, -1)
	}
	require.Equal(t, []string{`    %0 = "func.call"`, `    %1 = "stablehlo.multiply"`, `    %2, %3 = "func.call"`,
		`    %5 = "stablehlo.add"`, `    %7 = "stablehlo.reduce"`, `    %11 = "func.call"`, `    %12 = "func.call"`},
		lines("@main"), "what is computed between calls stays, and a level with one call")
	require.Equal(t, []string{`    %2, %3 = "func.call"`, `    %4 = "func.call"`}, lines("private @part_1"))
	require.Equal(t, []string{`    %6 = "func.call"`, `    %11 = "func.call"`}, lines("private @part_2"),
		"two of three calls")
	require.Contains(t, got, `    %11 = "func.call"(%5, %2, %arg1) {callee = @part_2, mhlo.frontend_attributes = `+
		`{inlineable = "false"}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)`)
}

// Types of numbers may have parts.
func TestDivideOfComplexNumbers(t *testing.T) {
	kernels.DivideFrom(t, 2, 2, 2)
	complex := func(text string) string { return strings.ReplaceAll(text, "4xf32", "4xcomplex<f32>") }
	require.Equal(t, complex(kernels.Divide(called)), kernels.Divide(complex(called)))
}

// What is written otherwise stays as it is.
func TestDivideLeavesWhatItDoesNotRead(t *testing.T) {
	kernels.DivideFrom(t, 2, 2, 2)
	for _, other := range []string{
		strings.Replace(called, "@main", "@other", 1),
		strings.Replace(called, `"stablehlo.multiply"`, "stablehlo.multiply", 1),
		strings.Replace(called, `%2, %3 = "func.call"`, `%2:2 = "func.call"`, 1),
		strings.Replace(called, `    "stablehlo.return"(%12`, `    "stablehlo.custom_call"(%12`, 1),
	} {
		require.Equal(t, other, kernels.Divide(other))
	}
}

// A divided program computes the same bits, gradients among them.
func TestDividedProgramsComputeTheSame(t *testing.T) {
	b := xlaBackend(t)
	s := stageCase{geometry{2, 6, 5, 8, 3, 1, 1}, 8}
	values1, dims := s.inputs(1)
	run := func() (bits string) {
		e, err := NewExec(b, func(in []*Node) []*Node {
			y, all := in[0], in[:0:0]
			for range 4 {
				out := s.cell(append([]*Node{y}, in[1:]...))
				y = Add(Mul(out[3], in[0]), y)
				all = append(all, out...)
			}
			return append(all, Gradient(ReduceAllSum(Mul(y, y)), in...)...)
		})
		require.NoError(t, err)
		defer e.Finalize()
		var in []any
		for i, x := range values1 {
			in = append(in, tensor(dtypes.Float32, x, dims[i]...))
		}
		out, err := e.Call(in...)
		require.NoError(t, err)
		for _, x := range out {
			bits += fmt.Sprint(values(t, x))
		}
		return bits
	}
	want := run()
	for _, part := range []int{1, 3, 7} {
		kernels.DivideFrom(t, 2, 1, part)
		require.True(t, want == run(), "parts of %d calls", part)
	}
}
