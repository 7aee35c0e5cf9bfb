package limits

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type limitedCase struct {
	Name string `validate:"required"`
	H    int    `validate:"gte=1"`
}

type common struct {
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

type limited struct {
	common
	Fit    int           `validate:"eq=0|gte=4"`
	Spread float64       `validate:"positive"`
	Ratios []float64     `validate:"unique,dive,gt=1,lte=100"`
	Levels []string      `validate:"dive,oneof=bilevel erm"`
	Cases  []limitedCase `validate:"dive"`
	Width  int           `validate:"gte=2,multiple=2"`
}

func TestLimits(t *testing.T) {
	good := limited{common{0.95}, 4, 1, []float64{3, 2}, []string{"erm"}, []limitedCase{{"a", 1}}, 4}
	require.Empty(t, Broken(good))

	require.Equal(t, []string{
		"Confidence must be more than 0.5 and less than 1, got 2", "Fit must be 0 or at least 4, got 2",
		"Spread must be more than 0 and finite, got NaN",
		"every value of Ratios must be more than 1 and at most 100, got 200",
		`every value of Levels must be one of bilevel, erm, got "both"`, `Cases[1].Name must be non-empty, got ""`,
		"Cases[1].H must be at least 1, got 0", "Width must be at least 2 and a multiple of 2, got 3",
	}, Broken(limited{common{2}, 2, math.NaN(), []float64{200}, []string{"both"}, []limitedCase{{"a", 1}, {"", 0}}, 3}))

	good.Ratios, good.Spread = []float64{2, 2}, math.Inf(1)
	require.Equal(t, []string{"Spread must be more than 0 and finite, got +Inf",
		"Ratios must have no duplicates, got [2 2]"}, Broken(good))

	ratios, _ := reflect.TypeFor[limited]().FieldByName("Ratios")
	require.Equal(t, "no duplicates; each more than 1 and at most 100", Words(ratios))
}
