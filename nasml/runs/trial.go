package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Trial is what a number depends on: two trials with the same fields give the same numbers,
// so that one is computed and the other read. It has nothing else, such as scale or host.
type Trial struct {
	Figure string `json:"figure"` // id of the figure that computes it, "oymak2021/figure2"
	// what determines the numbers, marshals to a JSON object; a json.RawMessage once read back
	Params any    `json:"params"`
	Seed   uint64 `json:"seed"` // seed of all its random streams
	Code   string `json:"code"` // version of the code that computes it, see package code
	Data   string `json:"data"` // fingerprint of the data, empty if there is none
}

// UnmarshalJSON reads a trial and leaves Params as it was written, a
// json.RawMessage, so that no number loses a digit on the way.
func (t *Trial) UnmarshalJSON(data []byte) error {
	type plain Trial
	var raw json.RawMessage
	p := plain{Params: &raw}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	p.Params = raw
	*t = Trial(p)
	return nil
}

// Key names the trial: the SHA-256 of its canonical JSON (sorted fields, no white space, one
// way to write a number) in 64 hexadecimal digits. It returns an error if Figure or Code is
// missing, or if Params is not a JSON object (NaN and ±Inf have no JSON).
func (t Trial) Key() (string, error) {
	whole, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("trial of %s has no JSON: %w", t.Figure, err)
	}
	fields, err := normalised(whole)
	if err != nil {
		return "", fmt.Errorf("trial of %s: %w", t.Figure, err)
	}
	return keyIn(fields)
}

func keyIn(fields map[string]any) (string, error) {
	figure, _ := fields["figure"].(string)
	code, _ := fields["code"].(string)
	if figure == "" || code == "" {
		return "", fmt.Errorf(
			"trial has figure %q and code %q: both must be set, or a changed figure would be taken for an old one",
			figure, code)
	}
	if _, ok := fields["params"].(map[string]any); !ok {
		params, err := json.Marshal(fields["params"])
		return "", errors.Join(fmt.Errorf("trial of %s: params are %.40s, expected a JSON object", figure, params), err)
	}
	whole, err := json.Marshal(fields)
	return digest(whole), err
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// normalised reads a JSON object. Written again, it has sorted fields, no white space and every number in one form:
// 1.0, 1e0 and 1 are the same.
func normalised(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a uint64 seed does not fit into a float64
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	_, err := normal(v) // in place
	return v, err
}

func normal(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return normalNumber(v)
	case []any:
		for i := range v {
			if v[i], err = normal(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = normal(v[name]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func normalNumber(n json.Number) (any, error) {
	if !strings.ContainsAny(n.String(), ".eE") { // most are fractions, and errors take time
		if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
			return i, nil
		}
		if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
			return u, nil
		}
	}
	x, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("number %s does not fit into a float64", n)
	}
	if math.Abs(x) <= 1<<53 && x == math.Trunc(x) {
		return int64(x), nil
	}
	return x, nil
}
