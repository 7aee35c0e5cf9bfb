package plots

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
)

// textFigure has running text, ligatures, formulas, bold text and a root.
func textFigure(font Font) Figure {
	f := tableFigure(ICML.Text(), table2())
	f.Name, f.Style.Font = "text", font
	f.Title = "Efficient first flow of $√{x_i}$ and $\\nabla θ_α ≤ 0$"
	return f
}

func TestNamesOfGlyphs(t *testing.T) {
	for r, want := range map[rune]string{
		'A': "A", ' ': "space", 'θ': "uni03B8", '𝜃': "uni03B8.it", 'ℎ': "h.it", 'ﬃ': "f_f_i",
		'∇': "uni2207", '𝔼': "u1D53C",
	} {
		require.Equal(t, want, LatinModern.lookup(r).name(), "%c", r)
	}
}

// A program decipheres what encipher did, and reads each outline back as numbers and
// commands that end where the glyph does.
func TestCharStringsAreTheOutlines(t *testing.T) {
	require.Equal(t, []byte{0xD9, 0xD6, 0x6F, 0x63}, encipher(make([]byte, 4), 55665)[:4], "the format's own start")
	for _, v := range []int{0, 107, -107, 108, 1131, -108, -1131, 1132, -5000} {
		require.Equal(t, v, readNumber(charNumber(nil, v)), "%d", v)
	}
	g := &glyph{advance: 0.5}
	g.path.Move(vg.Point{X: 0.1, Y: 0})
	g.path.Line(vg.Point{X: 0.2, Y: 0.3})
	require.Equal(t, []byte{
		139, 247 + (500-108)>>8, (500 - 108) & 255, 13, 139 + 100, 139, 21, 139 + 100, 247, 192, 5, 9, 14,
	}, g.charString(), "0 500 hsbw 100 0 rmoveto 100 300 rlineto closepath endchar")
}

func readNumber(b []byte) int {
	switch {
	case b[0] <= 246:
		return int(b[0]) - 139
	case b[0] <= 250:
		return (int(b[0])-247)*256 + int(b[1]) + 108
	case b[0] <= 254:
		return -(int(b[0])-251)*256 - int(b[1]) - 108
	}
	return int(int32(b[1])<<24 | int32(b[2])<<16 | int32(b[3])<<8 | int32(b[4]))
}

func TestTextIsText(t *testing.T) {
	for _, font := range []Font{LatinModern, Times} {
		f := textFigure(font)
		f.Style.Lettering = LiveText
		svg, err := f.Render("svg")
		require.NoError(t, err)
		require.Contains(t, string(svg), ">Efficient first flow of </text>")
		require.Contains(t, string(svg), `font-style="italic"`)
		eps, err := f.Render("eps")
		require.NoError(t, err)
		require.Contains(t, string(eps), "%%BeginResource: font ")
		require.Contains(t, string(eps), "xshow")
		f.Style.Lettering = Outlines
		for _, format := range []string{"pdf", "eps", "svg"} {
			data, err := f.Render(format)
			require.NoError(t, err)
			require.NotRegexp(t, "/Type1|BeginResource|<text", string(data), format)
		}
	}
}

// What readers of PDFs find: embedded fonts, none of them Type 3, and the words.
func TestFontsAreEmbedded(t *testing.T) {
	if _, err := exec.LookPath("pdffonts"); err != nil {
		t.Skip("needs pdffonts and pdftotext, of poppler-utils")
	}
	for font, name := range map[Font]string{LatinModern: "LMRoman10-Regular", Times: "STIXTwoText-Regular"} {
		dir := t.TempDir()
		_, err := textFigure(font).Save(dir, "pdf")
		require.NoError(t, err)
		file := filepath.Join(dir, "text.pdf")
		fonts, err := exec.Command("pdffonts", file).CombinedOutput()
		require.NoError(t, err, "%s", fonts)
		lines := strings.Split(strings.TrimSpace(string(fonts)), "\n")[2:]
		require.Len(t, lines, 3, "%s", fonts)
		for _, line := range lines {
			require.Regexp(t, `^[A-Z]{6}\+\S+ +Type 1 +Custom +yes yes`, line, "embedded, a subset")
		}
		require.Contains(t, string(fonts), name)
		text, err := exec.Command("pdftotext", file, "-").CombinedOutput()
		require.NoError(t, err, "%s", text)
		require.Contains(t, strings.ReplaceAll(string(text), "\n", " "), `Efficient first flow of xi and ∇θα ≤ 0`)
		require.Contains(t, string(text), "Weight sharing, direct search")
	}
}

// A program that draws PostScript takes the fonts.
func TestPostScriptDraws(t *testing.T) {
	if _, err := exec.LookPath("gs"); err != nil {
		t.Skip("needs Ghostscript")
	}
	dir := t.TempDir()
	_, err := textFigure(Times).Save(dir, "eps")
	require.NoError(t, err)
	out, err := exec.Command("gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=txtwrite", "-sOutputFile="+dir+"/out",
		dir+"/text.eps").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "no error, no substituted font")
	text, err := os.ReadFile(dir + "/out")
	require.NoError(t, err)
	require.Contains(t, string(text), "Weight sharing, direct search")
}
