package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

type params struct {
	Widths  []int
	Pair    [2]string
	Rate    float64
	Name    string
	Stored  bool
	private int //nolint:unused // must not be settable
}

type result struct{ p params }

func (result) Figure() plots.Figure { return plots.Figure{} }
func (result) Check() []runs.Claim  { return nil }
func (result) Records() []string    { return nil }

// register adds an entry for one test and takes it away again.
func register(t *testing.T, run func(context.Context, params) (*result, error)) Entry {
	t.Helper()
	e := Entry{
		ID: "test2000/figure1", Paper: "Test 2000", Title: "title", Kind: "figure", Notebook: "n.ipynb",
		Cost: Cost{"s", "h"},
	}
	Register(e, params{Widths: []int{1, 2}, Pair: [2]string{"a", "b"}}, params{Widths: []int{4096}}, run)
	t.Cleanup(func() { delete(entries, e.ID) })
	found, err := Lookup(e.ID)
	require.NoError(t, err)
	return found
}

func echo(_ context.Context, p params) (*result, error) { return &result{p}, nil }

func TestRunSetsParameters(t *testing.T) {
	e := register(t, echo)
	for set, want := range map[string]params{
		"Widths=64,128":    {Widths: []int{64, 128}, Pair: [2]string{"a", "b"}},
		"Widths=[64, 128]": {Widths: []int{64, 128}, Pair: [2]string{"a", "b"}},
		"Widths=64":        {Widths: []int{64}, Pair: [2]string{"a", "b"}},
		"Widths=":          {Widths: []int{}, Pair: [2]string{"a", "b"}},
		"Pair=tanh, sin":   {Widths: []int{1, 2}, Pair: [2]string{"tanh", "sin"}},
		`Pair=["x","y"]`:   {Widths: []int{1, 2}, Pair: [2]string{"x", "y"}},
		"Rate=3e-3":        {Widths: []int{1, 2}, Pair: [2]string{"a", "b"}, Rate: 0.003},
		"Name=0/1":         {Widths: []int{1, 2}, Pair: [2]string{"a", "b"}, Name: "0/1"},
		`Name="a=b"`:       {Widths: []int{1, 2}, Pair: [2]string{"a", "b"}, Name: "a=b"},
		"Stored=true":      {Widths: []int{1, 2}, Pair: [2]string{"a", "b"}, Stored: true},
	} {
		r, err := e.Run(t.Context(), Quick, []string{set})
		require.NoError(t, err, set)
		require.Equal(t, want, r.(*result).p, set)
	}
	r, err := e.Run(t.Context(), Quick, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, r.(*result).p.Widths, "what was set before changed no preset")
	r, err = e.Run(t.Context(), Paper, nil)
	require.NoError(t, err)
	require.Equal(t, []int{4096}, r.(*result).p.Widths)
}

func TestMistakesInTheCallAreUsageErrors(t *testing.T) {
	e := register(t, echo)
	for set, parts := range map[string][]string{
		"Width=64":       {`no parameter "Width"; did you mean Widths? (`, "nasml show test2000/figure1"},
		"Widths.A=64":    {`no parameter "Widths.A"; did you mean Widths? (`},
		"ate=1":          {"did you mean Rate?"},
		"StoredOnly=1":   {"did you mean Stored?"},
		"Figure=1":       {`no parameter "Figure" (`},
		"widths=64":      {`"widths"; did you mean Widths?`},
		"private=1":      {`"private"`},
		"Widths":         {"Field=value"},
		"Widths=a":       {`"a"`, "[]int"},
		"Widths=1.5":     {"[]int"},
		"Pair=relu":      {"[2]string"},
		"Pair=a,b,c":     {"[2]string"},
		"Rate=fast":      {"float64"},
		"Rate=1 2":       {"float64"},
		"Stored=perhaps": {"bool"},
	} {
		_, err := e.Run(t.Context(), Quick, []string{set})
		var usage *UsageError
		require.ErrorAs(t, err, &usage, set)
		for _, part := range parts {
			require.ErrorContains(t, err, part, set)
		}
		_, same := e.Params(Quick, []string{set})
		require.Equal(t, err, same, "the same without running anything")
	}
	_, err := e.Params(Paper, []string{"Widths=64"})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), "large", nil)
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "quick or paper")
}

func TestAnEntryMayHaveMoreScales(t *testing.T) {
	e := register(t, echo)
	e.ID = "test2000/figure2"
	Register(e, params{Rate: 1}, params{Rate: 2}, echo, Preset[params]{Large, params{Rate: 3}})
	t.Cleanup(func() { delete(entries, e.ID) })
	e, err := Lookup(e.ID)
	require.NoError(t, err)
	for scale, rate := range map[string]float64{Quick: 1, Paper: 2, Large: 3} {
		r, err := e.Run(t.Context(), scale, nil)
		require.NoError(t, err)
		require.Equal(t, rate, r.(*result).p.Rate)
	}
	_, err = e.Params("huge", nil)
	require.ErrorContains(t, err, `unknown scale "huge" (--scale or NASML_SCALE): take quick, paper or large`)
}

func TestRunCarriesScaleAndErrors(t *testing.T) {
	broken := errors.New("broken")
	e := register(t, func(ctx context.Context, _ params) (*result, error) {
		require.Equal(t, Paper, runs.Scale(ctx))
		return nil, broken
	})
	r, err := e.Run(t.Context(), Paper, nil)
	require.ErrorIs(t, err, broken)
	require.True(t, r == nil, "a nil *result in a Result would not be nil")
	_, err = Entry{ID: "made/by-hand"}.Run(t.Context(), Quick, nil)
	require.ErrorContains(t, err, "made/by-hand")
}

func TestLookup(t *testing.T) {
	register(t, echo)
	for id, part := range map[string]string{
		"test2000/figur1":  "did you mean test2000/figure1?",
		"TEST2000/Figure1": "did you mean",
		"other/figure1":    "did you mean",
		"figure1":          "did you mean test2000/figure1",
		"test":             "did you mean test2000/figure1",
		"nothing":          `"nasml list" shows the `,
		"":                 `"nasml list" shows the `,
	} {
		_, err := Lookup(id)
		var usage *UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, "test2000/figure1", All()[0].ID)
}

func TestRegisterRefusesWhatIsIncomplete(t *testing.T) {
	require.PanicsWithValue(t, `catalog: "x" lacks Paper`, func() {
		Register(Entry{ID: "x", Title: "t", Kind: "figure", Notebook: "n", Cost: Cost{"s", "h"}}, params{}, params{},
			echo)
	})
	e := register(t, echo)
	require.Panics(t, func() { Register(e, params{}, params{}, echo) })
}

// A letter or two wrong name what is nearest, not all of the paper's.
func TestMisspelt(t *testing.T) {
	known := []string{"li2021/figure1", "li2021/figure4", "li2021/table2", "oymak2021/theorem1"}
	for id, want := range map[string][]string{
		"li2021/tabel2":      {"li2021/table2"},
		"Li2021/figur4":      {"li2021/figure4"},
		"li2021/figure9":     {"li2021/figure1", "li2021/figure4"},
		"oymak21/theorem1":   {"oymak2021/theorem1"},
		"li2021/stationaryt": nil,
		"":                   nil,
	} {
		require.Equal(t, want, misspelt(id, known), id)
	}
}

type own struct{ Depth int }

type embedding struct {
	own
	params
	Extra string
}

func TestFieldsOfAnEntry(t *testing.T) {
	e := register(t, echo)
	e.ID = "test2000/figure3"
	Register(e, embedding{Extra: "a"}, embedding{Extra: "b", params: params{Rate: 2}},
		func(context.Context, embedding) (*result, error) { return nil, nil })
	t.Cleanup(func() { delete(entries, e.ID) })
	e, err := Lookup(e.ID)
	require.NoError(t, err)
	require.Equal(t, []string{Quick, Paper}, e.Scales())
	fields, err := e.Fields()
	require.NoError(t, err)
	found := map[string]Field{}
	for _, f := range fields {
		found[f.Name] = f
	}
	require.Len(t, found, 7)
	require.NotContains(t, found, "private")
	require.Equal(t, "[2]string", found["Pair"].Type)
	require.JSONEq(t, `"a"`, string(found["Extra"].Values[Quick]))
	require.JSONEq(t, `"b"`, string(found["Extra"].Values[Paper]))
	require.JSONEq(t, `2`, string(found["Rate"].Values[Paper]))
}

// What is stored is returned, what is open is counted, and nothing is computed.
func TestStoredComputesNothing(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx := runs.WithStore(t.Context(), store)
	trials := []runs.Trial{
		{Figure: "f", Params: map[string]int{"a": 1}, Code: "c"},
		{Figure: "f", Params: map[string]int{"a": 2}, Code: "c"},
	}
	n := 1
	e := register(t, func(ctx context.Context, p params) (*result, error) {
		store, err := runs.FromContext(ctx)
		require.NoError(t, err)
		records, err := store.Compute(ctx, trials[:n], runs.Options{}, func(_ context.Context, job *runs.Job) error {
			return job.Done(0, runs.Result{Values: map[string]float64{"x": 1}})
		})
		if err == nil && records[n-1].Values["x"] != 1 {
			panic("made of nothing")
		}
		return &result{p}, err
	})
	var open *OpenError
	_, err = e.Stored(ctx, Setting{Scale: Quick})
	require.ErrorAs(t, err, &open, "and no panic")
	require.Equal(t, OpenError{Open: 1}, *open)
	_, err = e.Run(ctx, Quick, nil)
	require.NoError(t, err)
	r, err := e.Stored(ctx, Setting{Scale: Quick})
	require.NoError(t, err)
	require.NotNil(t, r)
	n = 2
	_, err = e.Stored(ctx, Setting{Scale: Quick})
	require.EqualError(t, err, "1 of 2 trials are not computed yet")

	require.NoError(t, os.RemoveAll(filepath.Join(store.Dir(), "records")))
	require.NoError(t, os.WriteFile(filepath.Join(store.Dir(), "records"), nil, 0o600))
	_, err = e.Stored(ctx, Setting{Scale: Quick})
	require.ErrorContains(t, err, "run store cannot read", "which is no open trial")
}

// A value in brackets is one of a list, whatever commas are in it; brackets that do
// not close are letters.
func TestListsOfValuesInBrackets(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b": {"a", "b"}, "": {""}, "a": {"a"}, "a,": {"a", ""},
		"G(x=[('s', 0), ('t', 1)], y=range(2, 6)),V1": {"G(x=[('s', 0), ('t', 1)], y=range(2, 6))", "V1"},
		"a(b,c": {"a(b", "c"},
		"a)b,c": {"a)b", "c"},
	} {
		require.Equal(t, want, split(text), text)
	}
}

func TestScaleOfParameters(t *testing.T) {
	e := register(t, echo)
	require.Empty(t, ScaleOf(params{Widths: []int{64}}))
	e.Shipped = []Setting{{Scale: Paper, Set: []string{"Widths=64"}}}
	entries[e.ID] = e
	require.Equal(t, Paper, ScaleOf(params{Widths: []int{64}}), "a part of the paper's setting that is shipped")
	require.Equal(t, Quick, ScaleOf(params{Widths: []int{1, 2}, Pair: [2]string{"a", "b"}}))
	require.Equal(t, Paper, ScaleOf(params{Widths: []int{4096}}))
	require.Empty(t, ScaleOf(params{Widths: []int{4096}, Rate: 1}), "some are set")
	require.Equal(t, Paper, ScaleOf(params{Widths: []int{4096}, Rate: 1}, "Rate"), "but for the rate")
	require.Empty(t, ScaleOf(params{Widths: []int{4096}, Rate: 1}, "Widths", "None"))
	require.Empty(t, ScaleOf(struct{ Widths []int }{[]int{4096}}), "parameters of another entry")
}

func TestAllSettingsNamesEachOnce(t *testing.T) {
	e := register(t, echo)
	part := Setting{Scale: Paper, Set: []string{"Widths=64"}}
	unknown := Setting{Scale: "papr"} // kept: its readers report it
	e.Shipped = []Setting{{Scale: Paper}, part, unknown}
	require.Equal(t, []Setting{{Scale: Quick}, {Scale: Paper}, part, unknown}, e.AllSettings())
	require.Len(t, e.Shipped, 3, "is as it was")
}

type settings struct {
	Rate  float64 // of a step
	Inner struct{ Clip float64 }
	Names []string
	Extra string
}

type varying struct {
	Extra string
	Vary  func(row string, s *settings) `json:"-"`
}

// What parameters vary is set by the same path as a parameter, after what a function of
// theirs does; a parameter hides settings of its name, which go by the field that varies them.
func TestSettingsThatParametersVary(t *testing.T) {
	p := varying{Vary: func(row string, s *settings) { s.Rate, s.Names = 3, []string{row} }}
	for _, set := range []string{
		"Rate=0", "Inner.Clip=2", "Extra=parameter", "Vary.Extra=settings", "Vary.Inner.Clip=5",
	} {
		require.NoError(t, assign("a/b", &p, set))
	}
	var s settings
	p.Vary("row", &s)
	require.Equal(t, settings{Inner: struct{ Clip float64 }{5}, Names: []string{"row"}, Extra: "settings"}, s)
	require.Equal(t, "parameter", p.Extra)
	require.ErrorContains(t, assign("a/b", &p, "Rat=0"), "did you mean Rate?")
	require.ErrorContains(t, assign("a/b", &p, "Rate=fast"), "which is float64")
	for _, set := range []string{"Vary=0", "Vary.Clip=0", "Inner.Rate=0"} {
		require.ErrorContains(t, assign("a/b", &p, set), "no parameter")
	}
	var names []string
	for _, f := range declared(reflect.TypeFor[varying]()) {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"Extra", "Rate", "Inner", "Names"}, names)
}
