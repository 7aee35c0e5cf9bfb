package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data/datatest"
)

// TestBrowser does what a reader does: open a notebook in JupyterLab, Run All,
// look at the figure; and watch a search, and press Stop.
func TestBrowser(t *testing.T) {
	if os.Getenv(browserVar) == "" {
		t.Skip("drives a browser: `go tool nasml test` runs it, with $" + browserVar)
	}
	s := readySite(t)
	browser := chromium()
	if browser == "" || !exists(s.python("venv-browser")) {
		t.Skip("needs Chromium (Debian: apt install chromium), and Playwright from `go tool nasml test`")
	}
	// start opens JupyterLab on a copy of the notebooks, which it saves.
	start := func(t *testing.T) (folder string, address func(notebook string) string) {
		folder = t.TempDir()
		require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join(s.Root, "notebooks"))))
		live, err := os.ReadFile("testdata/live.ipynb")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "live.ipynb"), live, 0o644))
		return folder, startLab(t, s, folder)
	}
	t.Run("run all", func(t *testing.T) {
		_, address := start(t)
		var seen struct {
			Figures       int
			Errors        []string
			Width, Height float64 // of the last figure, in the browser's pixels
		}
		screenshot := drive(t, s, browser, "browser.py", address("oymak2021/figure2_lipschitz.ipynb"), &seen)
		require.Empty(t, seen.Errors)
		require.Positive(t, seen.Figures)
		require.Greater(t, seen.Width, 300.0, "see %s", screenshot)
		require.Greater(t, seen.Height, 150.0, "see %s", screenshot)
	})
	t.Run("tab and shift+tab", func(t *testing.T) {
		if !s.done(s.completion()) {
			t.Skip("needs gopls: run `go tool nasml setup`")
		}
		folder, address := start(t)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tab.ipynb"), notebookOf(t, cellToComplete), 0o644))
		var seen struct {
			Doc, Cell     string
			Tab, ShiftTab float64 // seconds of the answers
		}
		screenshot := drive(t, s, browser, "tab.py", address("tab.ipynb"), &seen)
		t.Logf("Tab %.2f s, Shift+Tab %.2f s", seen.Tab, seen.ShiftTab)
		require.Contains(t, seen.Doc, "Export writes a result's picture into the folder dir", "see %s", screenshot)
		require.Contains(t, seen.Cell, "Widths")
	})
	t.Run("index, own parts, edit", func(t *testing.T) {
		folder, address := start(t)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "own.ipynb"), notebookOf(t, ownImports, ownCell), 0o644))
		var seen struct {
			Pictures int
			Opened   string
			Runs     []struct {
				First, Figure float64 // seconds
				Errors        []string
			}
		}
		screenshot := drive(t, s, browser, "edit.py", address("index.ipynb"), &seen, address("own.ipynb"))
		require.Greater(t, seen.Pictures, 2, "of figures")
		require.Contains(t, seen.Opened, ".ipynb")
		require.Len(t, seen.Runs, 2, "see %s", screenshot)
		for _, r := range seen.Runs {
			require.Empty(t, r.Errors)
			t.Logf("first output after %.2f s, figure after %.2f s", r.First, r.Figure)
		}
	})
	t.Run("index as it opens", func(t *testing.T) {
		_, address := start(t)
		var seen struct {
			Widths []float64 // of the pictures, in the browser's pixels
			Guide  struct {
				Path     string
				Rendered bool
			}
			Dirty map[string]bool
		}
		screenshot := drive(t, s, browser, "index.py", address("index.ipynb"), &seen,
			address("oymak2021/lemma1_feature_maps.ipynb"))
		require.Greater(t, slices.Min(seen.Widths), 300.0, "see %s", screenshot)
		require.Contains(t, seen.Guide.Path, "vary")
		require.True(t, seen.Guide.Rendered, "%s is shown as it reads", seen.Guide.Path)
		require.Equal(t, map[string]bool{"index": false, "notebook": false}, seen.Dirty, "unsaved after opening")
	})
	t.Run("live view and stop", func(t *testing.T) {
		datatest.Dir(t, datatest.CIFAR10) // JupyterLab, which comes after it, inherits where that is
		folder, address := start(t)
		var seen struct {
			Pictures, Places int
			Text             string
			Width, Height    float64
		}
		screenshot := drive(t, s, browser, "live.py", address("live.ipynb"), &seen)
		require.Contains(t, seen.Text, "stopped; what was finished is stored", "see %s", screenshot)
		require.Equal(t, 1, seen.Places, "one picture in place of the other")
		require.Greater(t, seen.Pictures, 1)
		require.Greater(t, seen.Width, 300.0, "see %s", screenshot)
		records, err := filepath.Glob(filepath.Join(folder, "store", "records", "*", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, records, "the first search was finished before Stop")
	})
}

// cellToComplete is a cell of which p.Wi is not yet a parameter.
const cellToComplete = `import (
	"github.com/nasml/lab/nasml/notebook"
	"github.com/nasml/lab/nasml/oymak2021"
)

%%
p := oymak2021.Figure2Quick
p.Wi
notebook.Export(notebook.Run(oymak2021.Figure2, p), "figures", "pdf")
`

// ownImports and ownCell are a figure of a reader's own operation, space and images, as
// notebooks/guide/vary.md has them.
const (
	ownImports = `import (
	"os"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021"
	"github.com/nasml/lab/nasml/notebook"
	"github.com/nasml/lab/nasml/supernet"
)`
	ownCell = `%%
os.Setenv("GOMLX_BACKEND", "go") // which compiles nothing
os.Setenv("NASML_STORE", "store")
supernet.Operations["conv_5x5"] = func(l supernet.Layers, x supernet.Map, stride int, search bool) supernet.Map {
	return l.BN("bn", l.Conv("conv", l.ReLU(x), 5, stride, x.C))
}
supernet.Spaces["mine"] = supernet.NASBench201.With("conv_5x5")
pixels, labels := make([]float32, 64*8*8), make([]int, 64)
for i := range pixels {
	pixels[i], labels[i/64] = float32(i%11)/11, i/64%5
}
if _, err := data.FromArrays("squares", data.Train, 8, 8, 1, pixels, labels); err != nil {
	panic(err)
}
p := li2021.Figure1Quick
p.Rows, p.Seeds, p.Epochs, p.Confidence = []string{"darts"}, 1, 1, 0.95
p.Space, p.Data, p.Examples = "mine", "squares", 0
p.Channels, p.Image, p.Batch = 2, 8, 16
notebook.Show(notebook.Run(li2021.Figure1, p))
`
)

// drive runs a script of testdata in the browser on addresses, decodes what it has
// seen, and returns where its screenshot is.
func drive(t *testing.T, s *site, browser, script, address string, seen any, more ...string) string {
	t.Helper()
	screenshot := s.path("test", strings.TrimSuffix(script, ".py")+".png")
	args := append([]string{filepath.Join("testdata", script), browser, address}, more...)
	cmd := exec.CommandContext(t.Context(), s.python("venv-browser"), append(args, screenshot)...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err, "the browser's script failed")
	require.NoError(t, json.Unmarshal(out, seen), "%s", out)
	return screenshot
}

var localhost = netip.MustParseAddr("127.0.0.1")

// startLab starts JupyterLab for the time of the test and returns what makes
// the address of a notebook in it, token included.
func startLab(t *testing.T, s *site, folder string) func(notebook string) string {
	t.Helper()
	port, err := choosePort(localhost, 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		address := netip.AddrPortFrom(localhost, uint16(port))
		ended <- s.serveLab(ctx, console{t.Output(), t.Output()}, folder, address,
			"--no-browser", "--expose-app-in-browser")
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	for range 600 {
		if token, ok := labToken(t, s, port); ok {
			return func(notebook string) string { // reset: without the notebooks that were open before
				return fmt.Sprintf(
					"http://127.0.0.1:%d/lab/tree/%s?reset&token=%s",
					port,
					notebook,
					url.QueryEscape(token),
				)
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("JupyterLab ended before it was up: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("JupyterLab was not up after a minute")
	return nil
}

// labToken reads the token from the file that a running server leaves.
func labToken(t *testing.T, s *site, port int) (string, bool) {
	t.Helper()
	folder := s.path("jupyter", "runtime")
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return "", false
	}
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "jpserver-") || filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		var server struct {
			Port  int
			Token string
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err == nil && json.Unmarshal(text, &server) == nil && server.Port == port && answers(port, server.Token) {
			return server.Token, true
		}
	}
	return "", false
}

// answers reports whether the server takes the token: a server that was killed
// leaves its file.
func answers(port int, token string) bool {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/status?token=%s", port, url.QueryEscape(token)))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
