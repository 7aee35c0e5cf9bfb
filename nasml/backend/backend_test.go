package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindPluginsWalksUpToTheCheckout(t *testing.T) {
	root := t.TempDir()
	plugins := filepath.Join(root, ".nasml", "pjrt")
	deep := filepath.Join(root, "notebooks", "oymak2021")
	require.NoError(t, os.MkdirAll(plugins, 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	t.Chdir(deep)

	t.Setenv(pluginPathEnv, "")
	findPlugins()
	got, err := filepath.EvalSymlinks(os.Getenv(pluginPathEnv))
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(plugins)
	require.NoError(t, err)
	require.Equal(t, want, got)

	t.Setenv(pluginPathEnv, "/somewhere/else")
	findPlugins()
	require.Equal(t, "/somewhere/else", os.Getenv(pluginPathEnv), "the environment comes first")
}

func TestOpenGivesOneBackendForTheProcess(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	first, err := Open()
	require.NoError(t, err)
	second, err := Open()
	require.NoError(t, err)
	require.Equal(t, first, second)
	name, device := Describe(first)
	require.NotEmpty(t, name)
	require.NotEmpty(t, device)
	require.NotContains(t, device, "/", "a record must not name a path of the machine")
}
