package runs

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func keyOf(t *testing.T, trial Trial) string {
	t.Helper()
	key, err := trial.Key()
	require.NoError(t, err)
	return key
}

func TestKeyIsTheHashOfCanonicalJSON(t *testing.T) {
	trial := Trial{
		Figure: "p/f", Params: map[string]any{"width": 64, "delta": 0.01, "init": "he"},
		Seed: math.MaxUint64, Code: "c", Data: "d",
	}
	text := `{"code":"c","data":"d","figure":"p/f",` +
		`"params":{"delta":0.01,"init":"he","width":64},"seed":18446744073709551615}`
	require.Equal(t, digest([]byte(text)), keyOf(t, trial))
	// printf '%s' TEXT | sha256sum
	require.Equal(t, "86019870f527fe68dc6630784e68b4c5cdb31b1d3b313079d34acd7fffd54749", keyOf(t, trial))
}

func TestKeyIgnoresLayout(t *testing.T) {
	type params struct {
		Width int     `json:"width"`
		Delta float64 `json:"delta"`
	}
	base := Trial{Figure: "p/f", Params: params{64, 1000}, Code: "c"}
	for _, same := range []any{
		map[string]any{"width": 64, "delta": 1000},
		json.RawMessage(" {\n\"delta\": 1e3,\t\"width\": 64.0 }\n"),
		&params{64, 1000},
	} {
		other := base
		other.Params = same
		require.Equal(t, keyOf(t, base), keyOf(t, other), "%s", same)
	}
}

func TestKeyDependsOnEveryField(t *testing.T) {
	base := Trial{Figure: "p/f", Params: map[string]any{"a": 1}, Seed: 1, Code: "c", Data: "d"}
	changes := map[string]func(*Trial){
		"figure": func(t *Trial) { t.Figure = "p/g" },
		"value":  func(t *Trial) { t.Params = map[string]any{"a": 1.0000000000000002} },
		"name":   func(t *Trial) { t.Params = map[string]any{"b": 1} },
		"type":   func(t *Trial) { t.Params = map[string]any{"a": "1"} },
		"seed":   func(t *Trial) { t.Seed = 1<<53 + 1 },
		"seed+1": func(t *Trial) { t.Seed = 1<<53 + 2 },
		"code":   func(t *Trial) { t.Code = "d" },
		"data":   func(t *Trial) { t.Data = "" },
	}
	seen := map[string]string{keyOf(t, base): "base"}
	for name, change := range changes {
		trial := base
		change(&trial)
		key := keyOf(t, trial)
		require.NotContains(t, seen, key, "%s", name)
		seen[key] = name
	}
}

func TestKeyErrors(t *testing.T) {
	good := map[string]any{}
	for says, trial := range map[string]Trial{
		`figure "" and code "c"`: {Params: good, Code: "c"},
		`code ""`:                {Figure: "f", Params: good},
		"params are null":        {Figure: "f", Code: "c"},
		"params are [1]":         {Figure: "f", Code: "c", Params: []int{1}},
		"unsupported value: NaN": {Figure: "f", Code: "c", Params: map[string]any{"x": math.NaN()}},
		"does not fit":           {Figure: "f", Code: "c", Params: json.RawMessage(`{"x":1e999}`)},
	} {
		_, err := trial.Key()
		require.ErrorContains(t, err, says)
	}
}

// A trial that went through JSON keeps its key, whatever its numbers.
func TestKeySurvivesJSON(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		trial := Trial{
			Figure: rapid.StringN(1, 20, -1).Draw(r, "figure"), Code: "c",
			Params: map[string]any{
				"x":    rapid.Float64().Draw(r, "x"),
				"n":    rapid.Int64().Draw(r, "n"),
				"text": rapid.String().Draw(r, "text"),
				"list": rapid.SliceOf(rapid.Float32()).Draw(r, "list"),
			},
			Seed: rapid.Uint64().Draw(r, "seed"),
		}
		data, err := json.MarshalIndent(trial, "", " ")
		require.NoError(r, err)
		var back Trial
		require.NoError(r, json.Unmarshal(data, &back))
		want, err := trial.Key()
		require.NoError(r, err)
		got, err := back.Key()
		require.NoError(r, err)
		require.Equal(r, want, got)
	})
}
