package pixels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScale(t *testing.T) {
	im := &Images{Size: 2, Pixels: []uint8{0, 0, 51, 204}, Labels: []uint8{7, 3}}
	require.Equal(t, 2, im.Len())
	x := make([]float64, 2)
	Scale("unit-interval", im.Image(1), x)
	require.Equal(t, []float64{0.2, 0.8}, x)
	Scale("standardized", im.Image(1), x)
	require.InDeltaSlice(t, []float64{0.0693 / 0.3081, 0.6693 / 0.3081}, x, 1e-12)
	Scale("unit-norm", im.Image(1), x)
	require.InDeltaSlice(t, []float64{1 / math.Sqrt(17), 4 / math.Sqrt(17)}, x, 1e-12)
	Scale("unit-norm", im.Image(0), x)
	require.Equal(t, []float64{0, 0}, x, "a black image stays 0")
}
