package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBrowser does what a reader does: open the notebook in JupyterLab, Run
// All, look at the figure.
func TestBrowser(t *testing.T) {
	if os.Getenv(browserVar) == "" {
		t.Skip("drives a browser: `go tool nasml test` runs it, with $" + browserVar)
	}
	s := readySite(t)
	browser := chromium()
	if browser == "" || !exists(s.python("venv-browser")) {
		t.Skip("needs Chromium (Debian: apt install chromium), and Playwright from `go tool nasml test`")
	}
	folder := t.TempDir() // a copy, because JupyterLab saves the notebook
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join(s.Root, "notebooks"))))
	address := startLab(t, s, folder, "oymak2021/figure2_lipschitz.ipynb")

	screenshot := s.path("test", "browser.png")
	cmd := exec.CommandContext(t.Context(), s.python("venv-browser"), "testdata/browser.py", browser, address, screenshot)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err, "the browser's script failed")
	var seen struct {
		Figures       int
		Errors        []string
		Width, Height float64 // of the last figure, in the browser's pixels
	}
	require.NoError(t, json.Unmarshal(out, &seen), "%s", out)
	require.Empty(t, seen.Errors)
	require.Positive(t, seen.Figures)
	require.Greater(t, seen.Width, 300.0, "see %s", screenshot)
	require.Greater(t, seen.Height, 150.0, "see %s", screenshot)
}

// startLab starts JupyterLab for the time of the test and returns the address
// of a notebook in it, token included.
func startLab(t *testing.T, s *site, folder, notebook string) string {
	t.Helper()
	port, err := choosePort(0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.serveLab(ctx, console{t.Output(), t.Output()}, folder, port, "--no-browser", "--expose-app-in-browser")
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	for range 600 {
		if token, ok := labToken(t, s, port); ok {
			return fmt.Sprintf("http://127.0.0.1:%d/lab/tree/%s?token=%s", port, notebook, url.QueryEscape(token))
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("JupyterLab ended before it was up: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("JupyterLab was not up after a minute")
	return ""
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

// answers says whether the server takes the token: a server that was killed
// leaves its file.
func answers(port int, token string) bool {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/status?token=%s", port, url.QueryEscape(token)))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
