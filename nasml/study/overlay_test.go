package study

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
)

type inner struct {
	Clip  float64
	Means [2]float64
}

type settings struct {
	Rate  float64
	Flip  bool
	Names []string
	Inner inner
}

func TestOverlay(t *testing.T) {
	preset := settings{Rate: 1, Flip: true, Names: []string{"a"}, Inner: inner{Clip: 5, Means: [2]float64{1, 2}}}
	s := preset
	require.NoError(t, Overlay(&s, settings{}, nil))
	require.Equal(t, preset, s, "nothing is set")
	changes := settings{Rate: 2, Inner: inner{Means: [2]float64{0, 3}}}
	require.NoError(t, Overlay(&s, changes, []string{"Flip", "Inner.Clip", "Names"}))
	require.Equal(t, settings{Rate: 2, Inner: inner{Means: [2]float64{0, 3}}}, s)
	require.Equal(t, []string{"Rate", "Inner.Means"}, SetFields(changes))

	for _, path := range []string{"Rates", "Inner.Clips", "Rate.Clip", ""} {
		err := Overlay(&s, settings{}, []string{path})
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage, path)
	}
}

func TestNoteZero(t *testing.T) {
	type params struct {
		settings
		Rate float64 // of the figure: 0 leaves the preset's
	}
	require.Empty(t, NoteZero(nil, params{}, "Rate"))
	require.Empty(t, NoteZero(nil, params{}, "nothing"))
	zero := NoteZero(nil, params{}, "Inner.Clip")
	require.Equal(t, []string{"Inner.Clip"}, zero)
	require.Equal(t, zero, NoteZero(zero, params{}, "Inner.Clip"), "once")
	require.Equal(t, []string{"Inner.Clip", "Flip"}, NoteZero(zero, params{}, "Settings.Flip"))
}
