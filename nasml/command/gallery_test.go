package command

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/gallery"
	"github.com/nasml/lab/nasml/study/studytest"
)

// The notebook that JupyterLab opens first is what the catalog and the shipped
// trials say now.
func TestIndexOfTheNotebooksIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("draws everything that is shipped: not with -short")
	}
	t.Setenv("NASML_DATA", t.TempDir()) // the same on every machine
	root, err := findRoot()
	require.NoError(t, err)
	items, err := gallery.Shipped(t.Context())
	require.NoError(t, err)
	notebooks := filepath.Join(root, "notebooks")
	readme := filepath.Join(root, "README.md")
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	summary := "<!-- figures -->\n" + gallery.Summary(items) + "<!-- /figures -->"
	if os.Getenv(studytest.UpdateEnv) != "" {
		table := regexp.MustCompile(`(?s)<!-- figures -->.*<!-- /figures -->`)
		require.NoError(t, os.WriteFile(readme, table.ReplaceAllLiteral(text, []byte(summary)), 0o644))
		require.NoError(t, gallery.WriteIndex(notebooks, items))
		return
	}
	want, err := gallery.Index(items)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(notebooks, "index.ipynb"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "write it anew with %s=1 go test ./nasml/command -run "+
		"TestIndexOfTheNotebooks", studytest.UpdateEnv)
	require.Contains(t, string(text), summary, "the README's table: write it anew as above")
	for _, it := range items {
		require.FileExists(t, filepath.Join(root, it.Notebook))
		if it.Drawn() {
			require.FileExists(t, filepath.Join(notebooks, gallery.Thumbnails, it.Name()+".png"))
		}
	}
}
