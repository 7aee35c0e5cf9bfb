package claims

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsAreThoseOfFourPapers(t *testing.T) {
	rows, err := Rows()
	require.NoError(t, err)
	require.Len(t, rows, 405)
	count := map[string]int{}
	for _, r := range rows {
		count[r.Paper]++
	}
	require.Equal(t, map[string]int{
		"Khodak+ 2020": 51, "Oymak+ 2021": 75, "Oymak+ 2021, extended": 3, "Roberts+": 21, "Li+ 2021": 255,
	}, count)
	together := slices.CompactFunc(slices.Clone(rows), func(a, b Row) bool { return a.Paper == b.Paper })
	require.Len(t, together, len(count), "the rows of a paper stand together")
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	head := strings.Join(header, ",") + "\n"
	for text, want := range map[string]string{
		"":                                    "does not begin with the columns",
		"a,b\n":                               "does not begin with the columns",
		head + "x,P,p. 1,c,,,\n":              "x has 0 entries and the reason \"\", want entries or a reason",
		head + "x,P,p. 1,c,,a/b,test: x\n":    "want entries or a reason",
		head + "x,P,p. 1,c,,,reduced: x\n":    "want entries or a reason",
		head + "x,P,p. 1,c,,,whatever\n":      "want one that begins with one of",
		head + "x,P,,c,,a/b,\n":               "lacks id, paper, where or claim",
		head + "x,P,p,c,,a/b,\nx,P,p,c,,b,\n": "row 2: x is there twice",
		head + "x,P\n":                        "wrong number of fields",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want, text)
	}
	rows, err := parse(head + "x,P,p. 1,c,2,a/b a/c,\ny,P,p. 1,c,2,,test: nasml/a TestB\n" +
		"z,P,p. 1,c,2,a/b,reduced: small\n")
	require.NoError(t, err)
	require.Equal(t, []string{"a/b", "a/c"}, rows[0].Entries)
	folder, name := rows[1].ByTest()
	require.Equal(t, []string{"nasml/a", "TestB"}, []string{folder, name})
	folder, _ = rows[2].ByTest()
	require.Empty(t, folder)
}

func TestRowOf(t *testing.T) {
	for _, x := range [][3]string{
		{"oymak2021/theorem1", "thm1-eq2", "oymak2021/thm1-eq2"},
		{"oymak2021/theorem1", "oymak2021ext/abstract-links", "oymak2021ext/abstract-links"},
		{"khodak2020/corollary31", "RO017", "RO017"},
		{"li2021/table2", "LI100", "LI100"},
	} {
		require.Equal(t, x[2], RowOf(x[0], x[1]))
	}
}
