package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/internal/findings"
)

// goldenClaim is a claim in the table of verdicts that shipped trials give.
type goldenClaim struct {
	Name  string   `json:"name"`
	Rows  []string `json:"rows"`
	Holds *bool    `json:"holds"`
	entry string
}

func goldenClaims(t *testing.T) (all []goldenClaim) {
	t.Helper()
	root, err := findRoot()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "nasml/internal/gallery/testdata/claims.json"))
	require.NoError(t, err)
	var tables map[string][]goldenClaim
	require.NoError(t, json.Unmarshal(text, &tables))
	for setting, table := range tables {
		for _, c := range table {
			c.entry = strings.Fields(setting)[0]
			all = append(all, c)
		}
	}
	return all
}

// Every claim that a finding names fails by the shipped trials and never holds, and
// every row of a finding is judged by one of these.
func TestFindingsExplainClaimsThatFail(t *testing.T) {
	golden, rows := goldenClaims(t), rowsByID(t)
	for _, f := range findings.All() {
		judged := map[string]bool{}
		for _, named := range f.Claims {
			_, err := catalog.Lookup(named.Entry)
			require.NoError(t, err, f.ID)
			fails := false
			for _, c := range golden {
				if c.entry != named.Entry || !strings.HasPrefix(c.Name, named.Name) || c.Holds == nil {
					continue
				}
				require.False(t, *c.Holds, "%s: %s: %s holds", f.ID, c.entry, c.Name)
				fails = true
				for _, row := range c.Rows {
					judged[claims.RowOf(c.entry, row)] = true
				}
			}
			require.True(t, fails, "%s: no claim %s fails", f.ID, named)
		}
		for _, row := range f.Rows {
			require.Contains(t, rows, row, f.ID)
			require.Equal(t, rows[row].Paper, f.Paper, f.ID)
			require.True(t, judged[row], "%s: none of its claims judges %s", f.ID, row)
		}
	}
}
