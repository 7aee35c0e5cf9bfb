package study

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByAndColumns(t *testing.T) {
	require.Equal(t, [][]int{{3, 1, 5}, {2, 4}}, By([]int{3, 2, 1, 4, 5}, func(i int) bool { return i%2 == 1 }))
	require.Nil(t, Columns(nil))
	require.Equal(t, [][]float64{{1, 3}, {2, 4}}, Columns([][]float64{{1, 2}, {3, 4}}))
}
