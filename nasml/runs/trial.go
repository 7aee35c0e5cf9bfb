package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// Trial is what a number depends on: two trials with the same fields give the
// same numbers, so one of them is computed and the other is read.
//
// What does not change the numbers (the scale's name, the host, the format of
// a picture) stays out of it.
type Trial struct {
	Figure string `json:"figure"` // id of the figure that computes it, "oymak2021/figure2"
	Params any    `json:"params"` // what determines the numbers, marshals to a JSON object; a json.RawMessage once read back
	Seed   uint64 `json:"seed"`   // seed of all its random streams
	Code   string `json:"code"`   // version of the code that computes it, see [CodeVersion]
	Data   string `json:"data"`   // fingerprint of the data, empty where there is none
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

// Key names the trial: the SHA-256 of its canonical JSON in 64 hexadecimal
// digits. Canonical means sorted fields, no white space and one way to write a
// number, so that neither the order of fields nor the layout changes the key.
//
// It is an error where Figure or Code is missing, or where Params is not a
// JSON object (NaN and ±Inf have no JSON).
func (t Trial) Key() (string, error) {
	if t.Figure == "" || t.Code == "" {
		return "", fmt.Errorf("trial has figure %q and code %q: both must be set, or a changed figure would be taken for an old one", t.Figure, t.Code)
	}
	params, err := json.Marshal(t.Params)
	if err != nil {
		return "", fmt.Errorf("trial of %s: params have no JSON: %w", t.Figure, err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(params), []byte("{")) {
		return "", fmt.Errorf("trial of %s: params are %.40s, expected a JSON object", t.Figure, params)
	}
	whole, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("trial of %s: %w", t.Figure, err)
	}
	whole, err = canonical(whole)
	if err != nil {
		return "", fmt.Errorf("trial of %s: %w", t.Figure, err)
	}
	return digest(whole), nil
}

// digest is the SHA-256 of data in hexadecimal digits.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// canonical rewrites one JSON value with sorted fields, without white space
// and with every number in one form: 1.0, 1e0 and 1 are the same.
func canonical(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a uint64 seed does not fit into a float64
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	v, err := normal(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// normal gives every number inside v its canonical form.
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
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u, nil
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

// CodeVersion is the version of the code in the given file systems, usually
// the //go:embed'ed sources of the packages that compute a trial: the SHA-256
// over the tokens of every .go file, in the order of their paths. Comments,
// layout and tests do not count, so that mending a comment keeps the results;
// compiler directives (//go:…) and the bytes of all other files do.
//
// It is an error where a file cannot be read or is not Go.
func CodeVersion(sources ...fs.FS) (string, error) {
	h := sha256.New()
	for _, source := range sources {
		err := fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(source, path)
			if err == nil && strings.HasSuffix(path, ".go") {
				text, err = goTokens(path, text)
			}
			_, _ = fmt.Fprintf(h, "file %d\n%s", len(text), text)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("version of the code: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// goTokens returns the tokens of a Go file, one a line. A comma or semicolon
// before a closing bracket says nothing in Go and is left out: where lines are
// broken decides whether there is one.
func goTokens(path string, text []byte) ([]byte, error) {
	var s scanner.Scanner
	var errs scanner.ErrorList
	files := token.NewFileSet()
	s.Init(files.AddFile(path, -1, len(text)), text, errs.Add, scanner.ScanComments)
	var out bytes.Buffer
	held := "" // a comma or semicolon that waits for what follows it
	for {
		_, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return out.Bytes(), errs.Err()
		case token.COMMENT:
			if strings.HasPrefix(literal, "//go:") {
				fmt.Fprintf(&out, "%s\n", literal)
			}
			continue
		case token.COMMA, token.SEMICOLON:
			out.WriteString(held)
			held = tok.String() + "\n"
			continue
		case token.RPAREN, token.RBRACE, token.RBRACK:
			held = ""
		}
		fmt.Fprintf(&out, "%s%s %s\n", held, tok, literal)
		held = ""
	}
}
