package regret

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/supernet"
)

// lookup is one of the second space, whose best cell the table has.
func lookup() Lookup {
	return Lookup{
		Space: supernet.OneShot2, Ties: supernet.TiesFirst, Split: data.Test, Training: MeanTraining,
		Against: AgainstPublished,
	}
}

// flatOf is an architecture as weights on simplices.
func flatOf(t *testing.T, s supernet.OneShot, a supernet.OneShotArch) []float64 {
	t.Helper()
	blocks, err := s.Weights01(a)
	require.NoError(t, err)
	var flat []float64
	for _, row := range slices.Concat(blocks...) {
		sum := 0.
		for _, x := range row {
			sum += x
		}
		for _, x := range row {
			flat = append(flat, x/sum)
		}
	}
	return flat
}

// A curve over architectures is what Of says of each, by every rule for ties, and
// a cell that the table lacks is a gap.
func TestCurveLooksUpEveryEpoch(t *testing.T) {
	table := datatest.NASBench101(t)
	l := lookup()
	regrets, err := NewOneShotRegrets(table, l.Space, data.Query101{Split: data.Test, Epochs: 108}, AgainstPublished)
	require.NoError(t, err)
	var theta [][]float64
	var want, known []float64
	i := 0
	for a := range l.Space.Archs(true) {
		if i++; i%97 != 0 {
			continue
		}
		x, found, err := regrets.Of(a)
		require.NoError(t, err)
		theta = append(theta, flatOf(t, l.Space, a))
		want = append(want, x/100)
		known = append(known, map[bool]float64{true: 1}[found])
	}
	for ties := range supernet.TieRules {
		l.Ties = ties
		r, err := l.Run(t.Context(), table, theta, 0)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, r.Series[SeriesRegret], 1e-15)
		require.Equal(t, known, r.Series[SeriesKnown])
		require.Equal(t, r.Values[ValueAsked], r.Values[ValueFound], "a published best is no bound")
	}
	if !table.Complete() {
		require.Contains(t, known, 0., "the part of the table has gaps")
		require.Contains(t, known, 1.)
	}
}

// One training of three is drawn again for every epoch, and by the seed.
func TestCurveDrawsATraining(t *testing.T) {
	table := datatest.NASBench101(t)
	l := lookup()
	best, err := NewOneShotRegrets(table, l.Space, data.Query101{Split: data.Test, Epochs: 108}, AgainstTable)
	require.NoError(t, err)
	var theta [][]float64
	for a := range l.Space.Archs(true) {
		if c, err := OneShotCell(l.Space, a); err == nil && c.Canonical() == best.Best.Cell.Canonical() {
			theta = slices.Repeat([][]float64{flatOf(t, l.Space, a)}, 40)
			break
		}
	}
	require.NotEmpty(t, theta)
	var three []float64
	for _, training := range []string{"1", "2", "3"} {
		l.Training = training
		r, err := l.Run(t.Context(), table, theta[:1], 0)
		require.NoError(t, err)
		three = append(three, r.Series[SeriesRegret][0])
	}
	l.Training = OneTraining
	a, err := l.Run(t.Context(), table, theta, 0)
	require.NoError(t, err)
	for _, x := range three {
		require.Contains(t, a.Series[SeriesRegret], x)
	}
	for _, x := range a.Series[SeriesRegret] {
		require.Contains(t, three, x)
	}
	b, err := l.Run(t.Context(), table, theta, 1)
	require.NoError(t, err)
	require.NotEqual(t, a.Series, b.Series)
	l.Training, l.Against = MeanTraining, AgainstTable
	r, err := l.Run(t.Context(), table, theta[:1], 0)
	require.NoError(t, err)
	require.Equal(t, !table.Complete(), r.Values[ValueFound] < r.Values[ValueAsked], "regrets are bounds")
}

func TestCurveRefuses(t *testing.T) {
	table := datatest.NASBench101(t)
	for want, change := range map[string]func(l *Lookup){
		`found "4" as training of a cell, expected one of`: func(l *Lookup) { l.Training = "4" },
		`found the rule "last" for ties`:                   func(l *Lookup) { l.Ties = "last" },
		`found "x" to measure a regret against`:            func(l *Lookup) { l.Against = "x" },
		`expected split "valid" or "test"`: func(l *Lookup) {
			l.Split, l.Against = data.Train, AgainstTable
		},
		`found 26 weights, expected 35 in the space "1shot1-s3"`: func(l *Lookup) {
			l.Space = supernet.OneShot3
		},
	} {
		l := lookup()
		a := supernet.OneShotArch{Ops: []int{0, 0, 0, 0}, Parents: [][]int{{0}, {0}, {0, 1}, {0, 1}, {0, 1, 2}}}
		theta := flatOf(t, l.Space, a)
		change(&l)
		_, err := l.Run(t.Context(), table, [][]float64{theta}, 0)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Of the second space, whose best training the table has; the numbers are of the
// table's integers, taken by another program.
func TestSpread(t *testing.T) {
	table := datatest.NASBench101(t)
	r, err := Spread{Space: supernet.OneShot2, Split: data.Test}.Run(table)
	require.NoError(t, err)
	require.InDelta(t, 100*supernet.OneShot2.Known.TestError, r.Values[ValueSingle], 1e-5, "single precision")
	if !table.Complete() {
		require.InDelta(t, .23265560083045175, r.Values[ValueStd], 1e-12)
		require.InDelta(t, .2849437539176245, r.Values[ValueSample], 1e-12)
	}
	_, err = Spread{Space: supernet.OneShot2, Split: data.Train}.Run(table)
	require.ErrorContains(t, err, `expected split "valid" or "test"`)
}
