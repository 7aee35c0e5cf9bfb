package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

func TestSyntheticImagesKeepsItsSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := ImageSpec{
			Classes: rapid.IntRange(2, 12).Draw(t, "classes"),
			Height:  rapid.IntRange(8, 30).Draw(t, "height"),
			Width:   rapid.IntRange(8, 30).Draw(t, "width"),
			Ink:     rapid.Float64Range(0.02, 0.5).Draw(t, "ink"),
			Noise:   rapid.Float64Range(-1, 1).Draw(t, "noise"),
		}
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 9).Draw(t, "n")
		im, err := SyntheticImages(seed, n, spec)
		require.NoError(t, err)
		require.True(t, im.Synthetic)
		ink := int(math.Round(spec.Ink * float64(spec.Height*spec.Width)))
		for i := range n {
			require.Less(t, int(im.Labels[i]), spec.Classes)
			found := 0
			for _, p := range im.Image(i) {
				if p > 0 {
					found++
				}
			}
			require.Equal(t, ink, found)
		}
		longer, err := SyntheticImages(seed, n+3, spec)
		require.NoError(t, err)
		head, err := longer.Head(n)
		require.NoError(t, err)
		require.Equal(t, im.Fingerprint, head.Fingerprint, "more images leave the first ones as they are")
	})
}

// Without noise an image is its prototype moved by at most one pixel, so that
// a class has nine images.
func TestSyntheticImagesWithoutNoise(t *testing.T) {
	im, err := SyntheticImages(3, 500, ImageSpec{Classes: 2, Noise: -1})
	require.NoError(t, err)
	distinct := map[string]uint8{}
	for i, label := range im.Labels {
		was, seen := distinct[string(im.Image(i))]
		require.True(t, !seen || was == label, "the classes differ")
		distinct[string(im.Image(i))] = label
	}
	require.Len(t, distinct, 2*9)
}

func TestSyntheticImagesRefuses(t *testing.T) {
	for want, spec := range map[string]ImageSpec{
		"found 1, expected 2 to 256":      {Classes: 1},
		"found 300":                       {Classes: 300},
		"found 4×28 pixels":               {Height: 4},
		"found 0.9, expected a share":     {Ink: 0.9},
		"found NaN, expected a share":     {Ink: math.NaN()},
		"found NaN, expected at most 1":   {Noise: math.NaN()},
		"Noise: found 2, expected at mos": {Noise: 2},
	} {
		_, err := SyntheticImages(1, 5, spec)
		require.ErrorContains(t, err, want)
	}
	_, err := SyntheticImages(1, 0, ImageSpec{})
	require.ErrorContains(t, err, "found n = 0")
}

// The stand-in can be told apart by the nearest class mean, from training
// images to test images: it has the structure that it says.
func TestLoadSynthetic(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	train, err := Load(t.Context(), Synthetic, Train)
	require.NoError(t, err)
	test, err := Load(t.Context(), Synthetic, Test)
	require.NoError(t, err)
	require.Equal(t, []int{60_000, 10_000}, []int{train.Len(), test.Len()})
	require.Equal(t, Test, test.Split)
	require.True(t, train.Synthetic && test.Synthetic)
	require.Len(t, train.Counts(), 10)

	means := make([][]float64, 10)
	for c := range means {
		means[c] = make([]float64, 784)
		class, err := train.Classes(uint8(c))
		require.NoError(t, err)
		for i := range class.Len() {
			for at, p := range class.Image(i) {
				means[c][at] += float64(p) / float64(class.Len())
			}
		}
	}
	right := 0
	for i, label := range test.Labels {
		if nearest(means, test.Image(i)) == int(label) {
			right++
		}
	}
	require.Greater(t, float64(right)/float64(test.Len()), 0.95)
	_, err = Load(t.Context(), Synthetic, "all")
	require.ErrorContains(t, err, `found split "all" of data set synthetic`)
}

func nearest(means [][]float64, image []uint8) int {
	best, least := -1, math.Inf(1)
	for c, mean := range means {
		sum := 0.0
		for at, p := range image {
			sum += (mean[at] - float64(p)) * (mean[at] - float64(p))
		}
		if sum < least {
			best, least = c, sum
		}
	}
	return best
}

// A seed means the same bits on every platform and for all time, because
// stored results depend on them. The sums were found to be the same on amd64
// with and without fused multiply-add, arm64, ppc64le and s390x.
func TestGeneratorsAreFixed(t *testing.T) {
	im, err := SyntheticImages(7, 50, ImageSpec{})
	require.NoError(t, err)
	require.Equal(t, "c6fdca3c353b278fa68735f47cb43bf99b87841659f823b87d5fa3246762fd2e", im.Fingerprint)
	lin, err := LinearTeacher(9, 20_000, 50, 0.5)
	require.NoError(t, err)
	low, err := LowRankTeacher(9, 3_000, 5, 40, 3, 0.5)
	require.NoError(t, err)
	h := sha256.New()
	for _, s := range [][]float64{lin.X, lin.Y, lin.Theta, low.X, low.Y, low.Alpha, low.Theta} {
		require.NoError(t, binary.Write(h, binary.BigEndian, s))
	}
	require.Equal(t, "8ec703f9585bdd61b83149760dc3a631411e7be88130c0805059e2d512273a3f", hex.EncodeToString(h.Sum(nil)))
}

func TestLinearTeacherIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "d")
		s, err := LinearTeacher(rapid.Uint64().Draw(t, "seed"), n, d, 0)
		require.NoError(t, err)
		theta, y := mat.NewVecDense(d, s.Theta), mat.NewVecDense(n, nil)
		y.MulVec(mat.NewDense(n, d, s.X), theta)
		require.InDeltaSlice(t, y.RawVector().Data, s.Y, 1e-12)
		require.InDelta(t, 1, mat.Norm(theta, 2), 1e-14)
	})
}

func TestLowRankTeacherIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, h, p := rapid.IntRange(1, 5).
			Draw(t, "n"),
			rapid.IntRange(1, 8).
				Draw(t, "h"),
			rapid.IntRange(1, 8).
				Draw(t, "p")
		rank := rapid.IntRange(1, min(h, p)).Draw(t, "rank")
		s, err := LowRankTeacher(rapid.Uint64().Draw(t, "seed"), n, h, p, rank, 0)
		require.NoError(t, err)
		alpha, theta := mat.NewDense(rank, h, s.Alpha), mat.NewDense(rank, p, s.Theta)
		var m, gram mat.Dense
		gram.Mul(alpha, alpha.T())
		require.True(t, mat.EqualApprox(&gram, eye(rank), 1e-12))
		gram.Reset()
		gram.Mul(theta, theta.T())
		require.True(t, mat.EqualApprox(&gram, eye(rank), 1e-12))
		m.Mul(alpha.T(), theta)
		for i := range n {
			var prod mat.Dense
			prod.MulElem(mat.NewDense(h, p, s.X[i*h*p:(i+1)*h*p]), &m)
			require.InDelta(t, mat.Sum(&prod)/math.Sqrt(float64(rank)), s.Y[i], 1e-12)
		}
	})
}

func eye(n int) mat.Matrix {
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	return mat.NewDiagDense(n, ones)
}

// Moments of a large sample, each within five standard errors: X is N(0, 1),
// also from one sample to the next, and E y² = 1 + noise².
func TestTeacherMoments(t *testing.T) {
	const n, noise = 100_000, 0.5
	for name, draw := range map[string]func() (x, y []float64){
		"linear": func() (x, y []float64) {
			s, err := LinearTeacher(11, n, 4, noise)
			require.NoError(t, err)
			return s.X, s.Y
		},
		"low rank": func() (x, y []float64) {
			s, err := LowRankTeacher(11, n, 2, 2, 2, noise)
			require.NoError(t, err)
			return s.X, s.Y
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := draw()
			se := 1 / math.Sqrt(float64(len(x)))
			require.InDelta(t, 0, stat.Mean(x, nil), 5*se)
			require.InDelta(t, 1, stat.Variance(x, nil), 5*math.Sqrt2*se)
			require.InDelta(t, 3, stat.Moment(4, x, nil), 5*math.Sqrt(96)*se)
			require.InDelta(t, 0, stat.Correlation(x[4:], x[:len(x)-4], nil), 5*se, "neighbouring samples")
			v := 1 + noise*noise
			require.InDelta(t, v, stat.Moment(2, y, nil), 5*v*math.Sqrt2/math.Sqrt(n))
		})
	}
}

func TestTeacherPrefix(t *testing.T) {
	short, err := LowRankTeacher(5, 3, 4, 6, 2, 1)
	require.NoError(t, err)
	long, err := LowRankTeacher(5, 8, 4, 6, 2, 1)
	require.NoError(t, err)
	require.Equal(t, short.X, long.X[:3*4*6])
	require.Equal(t, short.Y, long.Y[:3])
	require.Equal(t, short.Alpha, long.Alpha)
	other, err := LowRankTeacher(6, 3, 4, 6, 2, 1)
	require.NoError(t, err)
	require.NotEqual(t, short.X, other.X)
}

func TestTeachersRefuse(t *testing.T) {
	_, err := LinearTeacher(1, 0, 2, 0)
	require.ErrorContains(t, err, "LinearTeacher: n, d: found [0 2]")
	_, err = LinearTeacher(1, 2, 2, math.NaN())
	require.ErrorContains(t, err, "found noise NaN")
	_, err = LowRankTeacher(1, 2, 3, 4, 4, 0)
	require.ErrorContains(t, err, "found rank 4, expected at most min(h, p) = 3")
	_, err = LowRankTeacher(1, 2, 3, 4, 1, math.Inf(1))
	require.ErrorContains(t, err, "found noise +Inf")
	_, err = LowRankTeacher(1, 2, -3, 4, 1, 0)
	require.ErrorContains(t, err, "found [2 -3 4 1]")
}
