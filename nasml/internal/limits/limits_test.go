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
		"Confidence is 2, want more than 0.5 and less than 1", "Fit is 2, want 0 or at least 4",
		"Spread is NaN, want more than 0 and finite",
		"Ratios has 200, want more than 1 and at most 100",
		`Levels has "both", want one of bilevel, erm`, `Cases[1].Name is "", want something`,
		"Cases[1].H is 0, want at least 1", "Width is 3, want at least 2 and a multiple of 2",
	}, Broken(limited{common{2}, 2, math.NaN(), []float64{200}, []string{"both"}, []limitedCase{{"a", 1}, {"", 0}}, 3}))

	good.Ratios, good.Spread = []float64{2, 2}, math.Inf(1)
	require.Equal(t, []string{"Spread is +Inf, want more than 0 and finite",
		"Ratios is [2 2], want none twice"}, Broken(good))

	ratios, _ := reflect.TypeFor[limited]().FieldByName("Ratios")
	require.Equal(t, "none twice; each more than 1 and at most 100", Words(ratios))
}
