package command

import (
	"os"
	"path/filepath"
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
	if os.Getenv(studytest.UpdateEnv) != "" {
		require.NoError(t, gallery.WriteIndex(notebooks, items))
		return
	}
	want, err := gallery.Index(items)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(notebooks, "index.ipynb"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "write it anew with %s=1 go test ./nasml/command -run "+
		"TestIndexOfTheNotebooks", studytest.UpdateEnv)
	for _, it := range items {
		require.FileExists(t, filepath.Join(root, it.Notebook))
		if it.Drawn() {
			require.FileExists(t, filepath.Join(notebooks, gallery.Thumbnails, it.Name()+".png"))
		}
	}
}
