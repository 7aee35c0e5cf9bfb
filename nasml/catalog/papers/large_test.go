package papers_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
)

// numbers are the paths of fields of a struct that a number can be assigned to, those of structs in it among them, but
// for those of an embedded struct that was seen in another, and its rates: nothing is as large as a rate.
func numbers(t reflect.Type, before string, seen map[reflect.Type]bool) []string {
	var all []string
	for i := range t.NumField() {
		f, of := t.Field(i), t.Field(i).Type
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		zero := reflect.Zero(of)
		switch {
		case f.Anonymous && !seen[of]:
			seen[of] = true
			all = append(all, numbers(of, before, seen)...)
		case f.Anonymous || !f.IsExported():
		case of.Kind() == reflect.Func && of.NumIn() == 2 && !seen[of]: // settings that it varies
			seen[of] = true
			all = append(all, numbers(of.In(1).Elem(), before, seen)...)
		case zero.CanInt() || zero.CanUint() || zero.CanFloat() && t.PkgPath() != settings:
			all = append(all, before+f.Name)
		case f.Type.Kind() == reflect.Struct:
			all = append(all, numbers(of, before+f.Name+".", seen)...)
		}
	}
	return all
}

// settings is the package of the settings of searches, which many entries embed.
var settings = reflect.TypeFor[search.Settings]().PkgPath()

// A number of 1e9 in any field of any entry is refused, or has a forecast that fits and trials whose list does, within
// 500 MB.
// What takes long allocates: nothing is timed here.
func TestNoNumberBlowsUp(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	t.Setenv(catalog.ForceEnv, "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 << 30))
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx, seen := runs.WithStore(t.Context(), store), map[reflect.Type]bool{}
	for _, e := range catalog.All() {
		p, err := e.Params(catalog.Quick, nil)
		require.NoError(t, err)
		_, _ = e.Stored(ctx, catalog.Setting{Scale: catalog.Quick}) // which reads what all of them read
		for _, path := range numbers(reflect.TypeOf(p), "", seen) {
			set := []string{path + "=1000000000"}
			t.Run(e.ID+"/"+path, func(t *testing.T) {
				before := allocated()
				err := fits(t, e, set)
				if err == nil {
					_, err = e.Stored(ctx, catalog.Setting{Scale: catalog.Quick, Set: set})
				}
				bytes := allocated() - before
				require.Less(t, bytes, 500e6, "%v", err)
			})
			runtime.GC()
		}
	}
}

// fits is what a run would say before its first trial.
func fits(t *testing.T, e catalog.Entry, set []string) error {
	p, err := e.Params(catalog.Quick, set)
	if err != nil {
		return err
	}
	return catalog.Fits(e.ID, p)
}

// allocated are the bytes of the heap that were ever allocated.
func allocated() float64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// What the machine has no memory for is refused, with the parameter and a value that fits, unless it is forced.
func TestTooLargeIsRefused(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(24 << 30))
	for _, c := range []struct{ id, set, want string }{
		{"oymak2021/figure2", "Widths=100000000", "Widths is 100,000,000, about "},
		{"oymak2021/figure2", "Batch=1000000000000", "Batch is 1,000,000,000,000, about "},
		{"oymak2021/theorem2", "Seeds=1000000000", "Seeds is 1,000,000,000, about "},
		{"roberts/search", "Width=2000000000", "Width is 2,000,000,000, about "},
		{"li2021/figure1", "Channels=1000000", "Channels is 1,000,000, about "},
		{"li2021/figure1", "CandidateBatch=1000000000000", "CandidateBatch is 1,000,000,000,000, about "},
		{"oymak2021/figure3", "Control.Hidden=100000000000", "Control.Hidden is 100,000,000,000, about "},
	} {
		e, err := catalog.Lookup(c.id)
		require.NoError(t, err)
		t.Setenv(catalog.ForceEnv, "")
		_, err = e.Run(t.Context(), catalog.Quick, []string{c.set})
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage, c.id)
		require.ErrorContains(t, err, c.want)
		_, after, _ := strings.Cut(err.Error(), c.want)
		value, _, _ := strings.Cut(after, " would fit")
		name, _, _ := strings.Cut(c.set, "=")
		set := fmt.Sprintf("%s=%s", name, strings.ReplaceAll(value, ",", ""))
		require.NoError(t, fits(t, e, []string{set}), set)
		t.Setenv(catalog.ForceEnv, "1")
		require.NoError(t, fits(t, e, []string{c.set}))
	}
}
