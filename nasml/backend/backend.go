// Package backend opens the one computation backend of a process: XLA/PJRT on CPU or GPU, or GoMLX's pure-Go backend.
//
// Which one is chosen by $GOMLX_BACKEND ("xla:cpu", "xla:cuda", "go"); without it XLA is taken, with the CUDA plugin
// where `go tool nasml setup --cuda` installed one and the CPU plugin otherwise. Nothing is downloaded: the plugins
// come from the set-up.
package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // GOMLX_BACKEND=go
)

// pluginPathEnv lists the folders in which go-xla looks for PJRT plugins. It
// reads it when the program starts, too early to be set here.
const pluginPathEnv = "PJRT_PLUGIN_LIBRARY_PATH"

// setupEnv names the folder of the set-up, where it is not .nasml.
const setupEnv = "NASML_SETUP"

var open = sync.OnceValues(func() (compute.Backend, error) { return openWith(pluginConfig()) })

func openWith(config string) (compute.Backend, error) {
	if !strings.Contains(config, "cuda") { // which has its own products
		if err := avoidXNNPACK(); err != nil {
			return nil, err
		}
	}
	if path := pluginPathOf(config); path != "" {
		hookPlugin(path)
	}
	if err := known(config); err != nil { // which NewWithConfig takes for a bug
		return nil, err
	}
	b, err := compute.NewWithConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening the backend %q (from $%s, default %q): %s; %s",
			config, compute.ConfigEnvVar, defaultConfig, firstText(err.Error()), advice)
	}
	return b, nil
}

// Check is the error of [Open] where $GOMLX_BACKEND names no backend. It opens nothing.
func Check() error {
	if config := os.Getenv(compute.ConfigEnvVar); config != "" {
		return known(config)
	}
	return nil
}

func known(config string) error {
	if name, _, _ := strings.Cut(config, ":"); !slices.Contains(compute.List(), name) {
		return fmt.Errorf("$%s is %q: take %s", compute.ConfigEnvVar, config, configs)
	}
	return nil
}

// flagsEnv holds options that XLA reads when its plugin is loaded.
const flagsEnv = "XLA_FLAGS"

// avoidXNNPACK keeps XLA:CPU from multiplying matrices by XNNPACK, which goes on using the right side of a product
// after other numbers have come to its address (xla-cpu-pjrt 0.0.1): a search would be trained on stale matrices. It
// costs no time that could be measured. Who names the option keeps it. Options that stand in a file, which the variable
// names, are put into the variable.
func avoidXNNPACK() error {
	flags := strings.TrimSpace(os.Getenv(flagsEnv))
	if flags != "" && !strings.HasPrefix(flags, "-") {
		text, err := os.ReadFile(flags)
		if err != nil {
			return fmt.Errorf("$%s is neither options nor a file of them: %w", flagsEnv, err)
		}
		flags = strings.Join(strings.Fields(string(text)), " ")
	}
	if strings.Contains(flags, "xnnpack") {
		return os.Setenv(flagsEnv, flags)
	}
	return os.Setenv(flagsEnv, strings.TrimSpace(flags+" --xla_cpu_use_xnnpack=false"))
}

// Open returns the process's backend. The first call opens it (about half a second for XLA), every later call returns
// the same one, or the same error. The error names the configuration asked for and what to do.
func Open() (compute.Backend, error) { return open() }

// Describe names a backend and its device for a record, "xla:cpu", "xla:cuda" or
// "go", and "xla:cpu - PJRT \"cpu\" plugin v0.81". Paths and what is in parentheses or brackets
// (XLA's virtual devices) say nothing about the numbers and are left out.
func Describe(b compute.Backend) (name, device string) {
	text := pluginPath.ReplaceAllString(firstText(b.Description()), "$1")
	text = aside.ReplaceAllString(text, "")
	return platform(b), strings.Join(strings.Fields(text), " ")
}

var (
	pluginPath = regexp.MustCompile(`[^\s":(]*/pjrt_c_api_(\w+?)_plugin\.\w+`)
	aside      = regexp.MustCompile(`\([^)]*\)|\[[^]]*\]`)
)

// withPlugin completes an XLA configuration with the path of the plugin: in the folders that the environment names,
// else the one that `go tool nasml setup` made, in $NASML_SETUP or in the checkout around the working directory:
//
//	xla:cpu,OPTIONS → xla:CHECKOUT/.nasml/pjrt/pjrt_c_api_cpu_plugin.so,OPTIONS
func withPlugin(config string) string {
	kind, rest, _ := strings.Cut(config, ":")
	plugin, options, _ := strings.Cut(rest, ",")
	if kind != "xla" || strings.Contains(plugin, "/") {
		return config
	}
	names := []string{plugin}
	if plugin == "" {
		names = defaultPlugins()
	}
	for _, name := range names {
		if path := findPlugin("pjrt_c_api_" + name + "_plugin.so"); path != "" {
			return strings.TrimSuffix("xla:"+path+","+options, ",")
		}
	}
	return config
}

// pluginPathOf is the path of the plugin in an XLA configuration, if it has one.
func pluginPathOf(config string) string {
	kind, rest, _ := strings.Cut(config, ":")
	plugin, _, _ := strings.Cut(rest, ",")
	if kind != "xla" || !filepath.IsAbs(plugin) {
		return ""
	}
	return plugin
}

// findPlugin looks for a file in the folders that the environment names. Where it names none, it looks for pjrt/file in
// the set-up's folder: $NASML_SETUP where it is set, else .nasml in the working directory and above it.
func findPlugin(file string) string {
	dir, _ := os.Getwd() // empty if it is gone: then nothing is above it
	var folders []string
	if named, made := os.Getenv(pluginPathEnv), os.Getenv(setupEnv); named != "" {
		folders = filepath.SplitList(named)
	} else if made != "" {
		abs, _ := filepath.Abs(filepath.Join(made, "pjrt"))
		folders = []string{abs}
	} else {
		for above := ""; above != dir; dir = filepath.Dir(dir) {
			folders, above = append(folders, filepath.Join(dir, ".nasml", "pjrt")), dir
		}
	}
	for _, folder := range folders {
		path := filepath.Join(folder, file)
		if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// firstText keeps GoMLX's message and drops the stack trace behind it.
func firstText(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// OpenDevices returns a backend with n devices or more: the process's own one (Open) where it has as many, else, on a
// CPU, one of its own with n devices, which share the processor's cores and its memory. XLA's CPU plugin has four
// devices unless it is told another number when it is opened; each later call for the same n returns the same backend.
//
// It returns an error if there are fewer devices: a GPU cannot be divided, and the pure-Go backend has one.
func OpenDevices(n int) (compute.Backend, error) {
	b, err := Open()
	if err != nil || n <= b.NumDevices() {
		return b, err
	}
	more.Lock()
	defer more.Unlock()
	if wide := more.opened[n]; wide != nil {
		return wide, nil
	}
	wide, err := openHostDevices(b, pluginConfig(), n)
	if err != nil {
		return nil, fmt.Errorf("opening a backend with %d devices: %s", n, firstText(err.Error()))
	}
	if wide == nil {
		return nil, fmt.Errorf("%d devices are asked for, the backend %q has %d: take at most as many, or "+
			"XLA on a CPU ($%s=xla:cpu), which has any number",
			n, b.Name(), b.NumDevices(), compute.ConfigEnvVar)
	}
	more.opened[n] = wide
	return wide, nil
}

// Opener returns a function that opens n devices and describes them, see [OpenDevices] and [Describe].
func Opener(n int) func() (name, device string, err error) {
	return func() (name, device string, err error) {
		b, err := OpenDevices(n)
		if err != nil {
			return "", "", err
		}
		name, device = Describe(b)
		return name, device, nil
	}
}

// more are the backends that were opened for their number of devices.
var more = struct {
	sync.Mutex
	opened map[int]compute.Backend
}{opened: map[int]compute.Backend{}}

// pluginConfig is the configuration that Open goes by.
func pluginConfig() string {
	config := os.Getenv(compute.ConfigEnvVar)
	if config == "" {
		config = defaultConfig
	}
	return withPlugin(config)
}
