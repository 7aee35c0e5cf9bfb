package command

import (
	"encoding/json"
	"strings"
)

// labPageConfig disables JupyterLab's question about news, which also uses the network.
const labPageConfig = `{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}
`

// labSettings shows a page of the guide as it reads: a link to it would open an editor.
const labSettings = `{"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}}
`

func (s *site) kernelFile() string {
	return s.path("share", "jupyter", "kernels", "gonb", "kernel.json")
}

// kernelGoFlags strip cells, which halves linking time, and skip version control, which fails in another user's
// checkout.
const kernelGoFlags = "-buildvcs=false '-ldflags=-s -w'"

// kernelspec tells Jupyter how to start GoNB. Cells use the checkout through a go.work file. GOPROXY=off keeps GoNB
// from looking up unknown imports on the network.
func (s *site) kernelspec(goFlags string) string {
	spec := map[string]any{
		"display_name": "Go (gonb)",
		"language":     "go",
		"argv": []string{s.path("bin", "gonb"), "-raw_error=true", "-go_work=" + s.Root,
			// Not into the terminal: GoNB reports a missing gopls, which comes later, as an error.
			"-logtostderr=false", "-stderrthreshold=FATAL", "-log_file=" + s.path("jupyter", "gonb.log"),
			"--kernel", "{connection_file}"},
		"interrupt_mode": "message",
		"env": map[string]string{
			"PATH":                  jupyterLiteral(s.toolPath()) + ":${PATH}",
			"GOFLAGS":               goFlags,
			"GOPROXY":               "off",
			"GOWORK":                "",
			"GOTOOLCHAIN":           "local",
			"GOMLX_NO_AUTO_INSTALL": "1",
			tunables:                largePages,
			pluginPathVar:           jupyterLiteral(s.path("pjrt")),
		},
	}
	data, _ := json.MarshalIndent(spec, "", "  ") // strings always marshal
	return string(data) + "\n"
}

// jupyterLiteral escapes a path, because Jupyter expands $NAME in a kernel's environment.
func jupyterLiteral(path string) string { return strings.ReplaceAll(path, "$", "$$") }
