package data

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromArrays(t *testing.T) {
	t.Cleanup(func() { own = map[Name]map[Split]*Images{} })
	bytes, err := FromArrays("mine", Train, 1, 2, 1, []uint8{0, 255, 51, 102}, []int{0, 199})
	require.NoError(t, err)
	found, err := Load(t.Context(), "mine", Train)
	require.NoError(t, err)
	require.Equal(t, bytes, found)
	require.Equal(t, []uint8{0, 199}, found.Labels, "any number of classes")

	_, err = Load(t.Context(), "mine", Test)
	require.ErrorContains(t, err, `have no split "test"`)
	floats, err := FromArrays("other", Train, 1, 2, 1, []float64{0, 1, 0.2, 0.4}, []int{0, 199})
	require.NoError(t, err)
	require.Equal(t, bytes.Fingerprint, floats.Fingerprint, "known by what is in it")
	again, err := FromArrays("mine", Train, 1, 2, 1, []uint8{1, 255, 51, 102}, []int{0, 199})
	require.NoError(t, err)
	require.NotEqual(t, bytes.Fingerprint, again.Fingerprint)
}

func TestFromArraysRefuses(t *testing.T) {
	t.Cleanup(func() { own = map[Name]map[Split]*Images{} })
	for want, make := range map[string]func() error{
		"no name for own data": func() error {
			_, err := FromArrays(MNIST, Train, 1, 1, 1, []uint8{1}, []int{0})
			return err
		},
		"found 1.5, expected a number from 0 to 1": func() error {
			_, err := FromArrays("mine", Train, 1, 1, 1, []float32{1.5}, []int{0})
			return err
		},
		"label 0 is 256": func() error {
			_, err := FromArrays("mine", Train, 1, 1, 1, []uint8{1}, []int{256})
			return err
		},
		"found 1 pixels and 2 labels": func() error {
			_, err := FromArrays("mine", Train, 1, 1, 1, []uint8{1}, []int{0, 1})
			return err
		},
	} {
		require.ErrorContains(t, make(), want)
	}
	_, known, err := ownSet("mine", Train)
	require.NoError(t, err)
	require.False(t, known, "what was refused is not kept")
}
