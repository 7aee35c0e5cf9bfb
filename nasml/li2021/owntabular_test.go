package li2021

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/search"
)

func keyOfTabular(t *testing.T, name string, f search.Tabular) string {
	t.Helper()
	search.TabularMethods[name] = f
	s, err := keyedTabular(name, search.TabularSettings{})
	require.NoError(t, err)
	t.Cleanup(func() { delete(search.TabularMethods, name); delete(search.TabularMethods, s.Method) })
	return s.Method
}

// after searches at random and returns what it saw in a query counted from the
// end.
func after(n int) search.Tabular {
	return func(ctx context.Context, b search.Bench, s search.TabularSettings, rng *rand.Rand) (search.Trajectory,
		error) {
		found, err := search.TabularMethods["rs"](ctx, b, s, rng)
		if err == nil {
			found.Final = found.Steps[len(found.Steps)-n].Arch
		}
		return found, err
	}
}

func TestAnOwnTabularMethodIsKnownByWhatItDoes(t *testing.T) {
	for name := range shippedTabular {
		s, err := keyedTabular(name, search.TabularAsPaper[name])
		require.NoError(t, err)
		require.Equal(t, search.TabularAsPaper[name], s, "the project's own go by their names")
	}
	mine := keyOfTabular(t, "mine", after(1))
	require.Equal(t, mine, keyOfTabular(t, "renamed", after(1)))
	require.NotEqual(t, mine, keyOfTabular(t, "mine", after(2)), "an edited body")

	search.TabularMethods["random"] = func(ctx context.Context, b search.Bench, s search.TabularSettings,
		_ *rand.Rand) (search.Trajectory, error) {
		return search.TabularMethods["rs"](ctx, b, s, rand.New(rand.NewPCG(rand.Uint64(), 1)))
	}
	defer delete(search.TabularMethods, "random")
	_, err := keyedTabular("random", search.TabularSettings{})
	require.ErrorContains(t, err, "searches in another way when it is called again")
}
