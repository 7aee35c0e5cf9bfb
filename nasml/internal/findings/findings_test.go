package findings

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestFindingsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	slug := regexp.MustCompile(`^[a-z0-9]+/[A-Za-z0-9-]+$`)
	for _, f := range All() {
		require.Regexp(t, slug, f.ID)
		require.False(t, seen[f.ID], "%s is there twice", f.ID)
		seen[f.ID] = true
		require.Contains(t, []Kind{Paper, Code}, f.Kind, f.ID)
		for _, text := range []string{f.Paper, f.Where, f.Title, f.Printed, f.True, f.Shown, f.Follows, f.Notebook} {
			require.NotEmpty(t, text, f.ID)
		}
		for _, text := range []string{f.Printed, f.True, f.Shown, f.Follows} {
			require.True(t, strings.HasSuffix(text, "."), "%s: %q is a sentence", f.ID, text)
		}
		require.NotEmpty(t, f.Tests, f.ID)
		if f.Kind == Code {
			require.Empty(t, f.Rows, "%s: a program does not make a claim of the paper wrong", f.ID)
			require.Empty(t, f.Claims, f.ID)
		}
		if len(f.Rows) > 0 {
			require.NotEmpty(t, f.Claims, "%s: a row fails by a claim", f.ID)
		}
		require.FileExists(t, filepath.Join(root, filepath.FromSlash(f.Notebook)), f.ID)
	}
}

func TestFindingsNameTestsThatAreThere(t *testing.T) {
	for _, f := range All() {
		for _, test := range f.Tests {
			files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(test.Folder), "*_test.go"))
			require.NoError(t, err)
			found := false
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				found = found || strings.Contains(string(text), "\nfunc "+test.Name+"(t *testing.T)")
			}
			require.True(t, found, "%s: no test %s", f.ID, test)
		}
	}
}

func TestOfAndOfClaim(t *testing.T) {
	f, ok := Of("oymak2021/lemma2")
	require.True(t, ok)
	require.Equal(t, "oymak2021/lemma2-joint-convexity", f.ID)
	f, ok = OfClaim("oymak2021/lemma2", "as printed: convex in θ only, L̄ of α")
	require.True(t, ok)
	require.Equal(t, "oymak2021/lemma2-joint-convexity", f.ID)
	for _, other := range [][2]string{
		{"oymak2021/lemma2", "jointly convex quadratics"},
		{"oymak2021/lemma1", "as printed: convex in θ only, L̄ of α"},
		{"li2021/theorem2", "Setting 1 with γ = 1 (joint) on f = xy: E Δ over the bound"},
	} {
		_, ok = OfClaim(other[0], other[1])
		require.False(t, ok, "%v", other)
	}
	_, ok = Of("LI004")
	require.False(t, ok)
}

func TestNoRowOrClaimHasTwoFindings(t *testing.T) {
	rows, claims := map[string]string{}, map[Claim]string{}
	for _, f := range All() {
		for _, row := range f.Rows {
			require.Empty(t, rows[row], row)
			rows[row] = f.ID
		}
		for _, c := range f.Claims {
			require.Empty(t, claims[c], c.String())
			claims[c] = f.ID
		}
	}
}

// The page of the guide is what Markdown writes. With NASML_UPDATE_GOLDEN=1 it is
// written again.
func TestPageOfTheGuide(t *testing.T) {
	file := filepath.Join(root, "notebooks", "guide", "findings.md")
	if os.Getenv("NASML_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, []byte(Markdown()), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, Markdown(), string(have),
		"the findings have changed: NASML_UPDATE_GOLDEN=1 go test ./nasml/internal/findings writes the page anew")
}

func TestEveryFindingIsOnceOnBothPages(t *testing.T) {
	for _, f := range All() {
		for _, page := range []string{Markdown(), HTML()} {
			require.Equal(t, 1, strings.Count(page, `id="`+f.ID+`"`), f.ID)
		}
		for _, line := range f.lines() {
			require.NotEmpty(t, line[1], "%s: %s", f.ID, line[0])
		}
		require.Len(t, f.lines(), 5)
	}
	require.Equal(t, len(All()), strings.Count(Markdown(), "**Follows.**"))
	require.NotContains(t, HTML(), "<(", "text is escaped")
}
