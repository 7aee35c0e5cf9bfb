//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// A product whose right side is an input sees what that input is now, also
// where its memory held another matrix before.
func TestProductsSeeNewMatricesAtOldAddresses(t *testing.T) {
	b := openCPU(t)
	const n, p, d = 256, 300, 512
	exec, err := NewExec(b, func(x, w *Node) *Node { return Dot(x, w).Product() })
	require.NoError(t, err)
	defer exec.Finalize()
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(size int) []float32 {
		all := make([]float32, size)
		for i := range all {
			all[i] = rng.Float32()
		}
		return all
	}
	left := draw(n * p)
	x := tensors.FromFlatDataAndDimensions(left, n, p)
	for round := range 10 {
		right := draw(p * d)
		w := tensors.FromFlatDataAndDimensions(right, p, d)
		out, err := exec.Call1(x, w)
		require.NoError(t, err)
		require.NoError(t, out.ToLocal())
		got := tensors.MustCopyFlatData[float32](out)
		for _, at := range [][2]int{{0, 0}, {100, 200}, {n - 1, d - 1}} {
			want := 0.0
			for k := range p {
				want += float64(left[at[0]*p+k]) * float64(right[k*d+at[1]])
			}
			require.InEpsilon(t, want, got[at[0]*d+at[1]], 1e-4, "round %d", round)
		}
		require.NoError(t, out.FinalizeAll())
		require.NoError(t, w.FinalizeAll())
	}
}
