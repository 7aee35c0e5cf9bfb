package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A dot-import stays where the cell uses a name of it, and goes where it does not; other
// imports are added and dropped as by goimports.
func TestDotImports(t *testing.T) {
	for name, test := range map[string]struct {
		body   string
		stays  bool
		others string
	}{
		"used":            {"func main() { _ = ToUpper(\"a\") }", true, ""},
		"a type of it":    {"func f(b *Builder) {}\n\nfunc main() {}", true, ""},
		"unused":          {"func main() { println(1) }", false, ""},
		"the cell's own":  {"func ToUpper(s string) string { return s }\nfunc main() { ToUpper(\"a\") }", false, ""},
		"through another": {"func main() { fmt.Println(strconv.Itoa(1)) }", false, "\"strconv\""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module cell\n\ngo 1.26\n"), 0o600))
			file := filepath.Join(dir, "main.go")
			source := "package main\n\nimport (\n\t. \"strings\"\n\t\"os\"\n)\n\n" + test.body + "\n"
			require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
			require.NoError(t, mend(file))
			out, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, test.stays, strings.Contains(string(out), ". \"strings\""), "%s", out)
			require.NotContains(t, string(out), "\"os\"")
			require.Contains(t, string(out), test.others)
		})
	}
}
