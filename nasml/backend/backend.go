// Package backend opens the one computation backend of a process: XLA/PJRT on
// CPU or GPU, or GoMLX's pure-Go backend.
//
// Which one is chosen by $GOMLX_BACKEND ("xla:cpu", "xla:cuda", "go"); without
// it XLA is taken, with the CUDA plugin where `go tool nasml setup --cuda`
// installed one and the CPU plugin otherwise. Nothing is downloaded: the
// plugins come from the set-up.
package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // GOMLX_BACKEND=go
)

// pluginPathEnv lists the folders in which go-xla looks for PJRT plugins.
const pluginPathEnv = "PJRT_PLUGIN_LIBRARY_PATH"

var open = sync.OnceValues(func() (compute.Backend, error) {
	findPlugins()
	config := os.Getenv(compute.ConfigEnvVar)
	if config == "" {
		config = defaultConfig
	}
	b, err := compute.NewWithConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening the backend %q (from $%s, default %q): %s; %s",
			config, compute.ConfigEnvVar, defaultConfig, firstText(err.Error()), advice)
	}
	return b, nil
})

// Open returns the process's backend. The first call opens it (about half a
// second for XLA), every later call returns the same one, or the same error.
// The error names the configuration asked for and what to do.
func Open() (compute.Backend, error) { return open() }

// Describe names a backend and its device for a record, "xla" and "xla:cpu -
// PJRT \"cpu\" plugin v0.81". What is in parentheses or brackets (the plugin's
// path, XLA's virtual devices) says nothing about the numbers and is left out.
func Describe(b compute.Backend) (name, device string) {
	text := aside.ReplaceAllString(firstText(b.Description()), "")
	return b.Name(), strings.Join(strings.Fields(text), " ")
}

var aside = regexp.MustCompile(`\([^)]*\)|\[[^]]*\]`)

// findPlugins points go-xla at the plugins that `go tool nasml setup` put into
// the checkout around the working directory, unless the environment says
// where they are.
func findPlugins() {
	if os.Getenv(pluginPathEnv) != "" {
		return
	}
	dir, err := os.Getwd()
	for err == nil {
		plugins := filepath.Join(dir, ".nasml", "pjrt")
		if info, statErr := os.Stat(plugins); statErr == nil && info.IsDir() {
			// Setenv fails only for malformed names, and this one is constant.
			_ = os.Setenv(pluginPathEnv, plugins)
			return
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return
		}
		dir = parent
	}
}

// firstText keeps GoMLX's message and drops the stack trace behind it.
func firstText(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
