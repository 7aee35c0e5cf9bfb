package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutData is a folder of data sets with nothing in it, and no network.
func withoutData(t *testing.T) context.Context {
	t.Helper()
	t.Setenv("NASML_DATA", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is downloaded
	return ctx
}

func TestFactsNeedNoData(t *testing.T) {
	ctx := withoutData(t)
	o, err := View{Name: MNIST, Split: Train, Classes: []uint8{0, 1}}.Open(ctx)
	require.NoError(t, err)
	require.Equal(t, 12665, o.Len)
	require.Equal(t, "1e3031a9d767374b1f6227dd00722c57d2aa1d382414e09366d13b470b9b6848", o.Fingerprint)
	_, err = o.Images(ctx)
	require.Error(t, err, "the images themselves are not there")

	reviews, err := ReviewView{IMDb, 3000, 1500, 2000}.Open(ctx)
	require.NoError(t, err)
	require.Equal(t, 2000, reviews.Parts[2].Len)
}

func TestAnUnknownViewIsLoaded(t *testing.T) {
	ctx := withoutData(t)
	_, err := View{Name: MNIST, Split: Train, First: 17}.Open(ctx)
	require.Error(t, err)
	o, err := View{Name: Synthetic, Split: Train, First: 17}.Open(ctx)
	require.NoError(t, err)
	require.True(t, o.Synthetic)
	im, err := o.Images(ctx)
	require.NoError(t, err)
	require.Equal(t, Facts{im.Fingerprint, 17, true}, o.Facts)
	again, err := o.Images(ctx)
	require.NoError(t, err)
	require.Same(t, im, again)
}

func TestReviewsOfAView(t *testing.T) {
	o, err := ReviewView{Synthetic, 30, 20, 10}.Open(withoutData(t))
	require.NoError(t, err)
	parts, err := o.Reviews(t.Context())
	require.NoError(t, err)
	for i, n := range []int{30, 20, 10} {
		require.Equal(t, Facts{parts[i].Fingerprint, n, true}, o.Parts[i])
	}
	_, err = ReviewView{Name: Synthetic, Test: 1 << 30}.Open(t.Context())
	require.ErrorContains(t, err, "take fewer")
}

func TestSpreadIsEvenAndHasBothParities(t *testing.T) {
	require.Equal(t, []int{0, 3, 6, 9}, Spread(4, 12))
	require.Equal(t, []int{0, 1, 2}, Spread(3, 3))
	even := 0
	for _, i := range Spread(1000, 25000) {
		require.Less(t, i, 25000)
		if i%2 == 0 {
			even++
		}
	}
	require.Equal(t, 500, even)
}

// The facts that are built in are those of the publishers' files.
func TestKnownFactsAreThoseOfTheData(t *testing.T) {
	if _, err := Load(t.Context(), MNIST, Train); err != nil || os.Getenv("NASML_DATA") == "" {
		t.Skip("needs real data in $NASML_DATA")
	}
	for text, facts := range knownViews {
		im, err := parseView(t, text).load(t.Context())
		require.NoError(t, err, text)
		require.Equal(t, facts, Facts{im.Fingerprint, im.Len(), false}, text)
	}
	for _, view := range []ReviewView{{IMDb, 3000, 1500, 2000}, {Name: IMDb}} {
		o := &OpenedReviews{view: view}
		parts, err := o.Reviews(t.Context())
		require.NoError(t, err)
		for i, n := range view.parts() {
			require.Equal(t, knownReviews[partName(IMDb, i, n)], Facts{parts[i].Fingerprint, parts[i].Len(), false})
		}
	}
}

// What an archive has for a view that is not built in is remembered, its incompleteness too.
func TestAnArchiveIsReadOnce(t *testing.T) {
	if os.Getenv("NASML_DATA") == "" || !Have(CIFAR10) {
		t.Skip("needs CIFAR-10 in $NASML_DATA")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	view := View{Name: CIFAR10, Split: Test}
	o, err := view.Open(t.Context())
	kept, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "nasml", "fingerprints", "*.json"))
	require.Len(t, kept, 1)
	again, sameErr := view.Open(t.Context())
	require.Equal(t, err == nil, sameErr == nil)
	if err != nil {
		require.ErrorIs(t, sameErr, ErrIncomplete)
		require.EqualError(t, sameErr, err.Error())
		return
	}
	require.Equal(t, o.Facts, again.Facts)
	require.Nil(t, again.images, "read again")
}

// parseView is the inverse of View.String.
func parseView(t *testing.T, text string) View {
	for _, split := range []Split{Train, Test} {
		for _, name := range []Name{MNIST, CIFAR10} {
			for _, classes := range [][]uint8{nil, {0, 1}, {3, 5}} {
				for _, first := range []int{0, 500, 1000, 2000, 4000, 10000} {
					if v := (View{Name: name, Split: split, Classes: classes, First: first}); v.String() == text {
						return v
					}
				}
			}
		}
	}
	require.Fail(t, fmt.Sprintf("no view is called %q", text))
	return View{}
}
