package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A string that is not closed yet becomes a name that its field may be, in the figure of the cell.
func TestCellStrings(t *testing.T) {
	const updates = "adam eg eg-clamp-normalize eg-normalize-clamp projected sgd softmax xnas"
	for cell, want := range map[string]string{
		"p := li2021.Figure1Quick; p.Update = '":                             updates,
		"p := li2021.Figure1Quick; p.Rows, p.Update = []string{''}, 'eg-c":   "eg-clamp-normalize",
		"p := li2021.Figure1Quick; p.Rows = []string{'darts', 'gaea-d":       "gaea-darts",
		"p := li2021.Table2Quick; p.Rows = append(p.Rows, 'rs":               "rsps",
		"p := oymak2021.Figure3Params{Method: 'pc":                           "pc-darts",
		"p := oymak2021.Figure2Quick; p.Data = 'm'; if true { p.Inputs = 's": "standardized",
		"p.Vary = func(r string, s *search.Settings) { s.Hypergradient = 'u": "unrolled",
		"p := li2021.Figure1Quick; p.Update = 'eg'":                          "",
		"p := li2021.Figure1Quick; p.Seeds = '":                              "",
		"simplex.Updates['":                                                  "",
		"println('":                                                          "",
		"p.Update = `":                                                       "",
		"":                                                                   "",
	} {
		cell = "import \"os\"\n!ls\n%%\n" + strings.ReplaceAll(cell, "'", `"`)
		require.Equal(t, want, strings.Join(cellStrings(t.Context(), cell), " "), cell)
	}
}
