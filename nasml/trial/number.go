package trial

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64 that may not apply: NaN is null in JSON and "–" in text.
type Number float64

// None is the number that does not apply.
var None = Number(math.NaN())

// Valid reports whether the number applies.
func (x Number) Valid() bool { return !math.IsNaN(float64(x)) }

// String is the number with four significant digits, or "–".
func (x Number) String() string {
	if !x.Valid() {
		return "–"
	}
	return strconv.FormatFloat(float64(x), 'g', 4, 64)
}

// MarshalJSON writes NaN as null. It returns an error if the number is infinite.
func (x Number) MarshalJSON() ([]byte, error) {
	if !x.Valid() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON reads null as [None].
func (x *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*x = None
		return nil
	}
	return json.Unmarshal(data, (*float64)(x))
}
