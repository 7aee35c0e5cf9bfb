package study

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

type scaled struct {
	N, Seeds   int
	StoredOnly bool
}

type nothing struct{}

func (nothing) Figure() plots.Figure { return plots.Figure{} }
func (nothing) Check() []runs.Claim  { return nil }
func (nothing) Records() []string    { return nil }

func TestNotesOnTheScale(t *testing.T) {
	catalog.Register(catalog.Entry{
		ID: "scaled/figure1", Paper: "P", Title: "t", Kind: "figure", Cost: catalog.Cost{Quick: "a", Paper: "b"},
	}, scaled{N: 1}, scaled{N: 2}, func(context.Context, scaled) (nothing, error) { return nothing{}, nil },
		catalog.Preset[scaled]{Scale: catalog.Large, Params: scaled{N: 3}})
	for n, want := range map[int][2]string{
		1: {" Quick scale.", " Quick scale, not the paper's setting."},
		2: {" Large scale.", " The paper's setting."},
		3: {" Large scale.", " Large scale, not the paper's setting."},
		4: {" Varied parameters.", " Varied parameters, not the paper's setting."},
	} {
		for _, storedOnly := range []bool{false, true} { // which changes no number
			p := scaled{n, 0, storedOnly}
			require.Equal(t, want, [2]string{ScaleNote(p), SettingNote(p)})
		}
	}
	require.Equal(t, " The paper's setting.", SettingNote(scaled{N: 2, Seeds: 1}), "how many is stated beside it")
	require.Equal(t, []string{"0 seeds", "1 seed", "2 seeds"},
		[]string{Counted(0, "seed"), Counted(1, "seed"), Counted(2, "seed")})
	require.Equal(t, "NAS-Bench-201", SpaceTitle("nasbench201"))
	require.Equal(t, "mine", SpaceTitle("mine"))
}
