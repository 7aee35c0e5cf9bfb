package plots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// paperFigure has a curve, a published one and a caption.
func paperFigure(params string) Figure {
	return Figure{
		Name: "f", Caption: "Accuracy of $θ$.", Meta: map[string]string{"params": params},
		Panels: [][]Panel{{{
			X: Axis{Label: "epoch"}, Y: Axis{Label: "accuracy"},
			Series: []Series{
				{Label: "DARTS", X: []float64{1, 2, 3}, Y: []float64{1, 2, 4}},
				{Label: "published", X: []float64{1, 2, 3}, Y: []float64{1, 3, 4}, Reference: true},
			},
		}}},
	}
}

func bases(paths []string) string {
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return strings.Join(names, " ")
}

func TestExportIsInTheVenuesStyle(t *testing.T) {
	dir := t.TempDir()
	done, err := paperFigure("0123").Export(dir, Export{Formats: []string{"pdf", "svg"}, Style: ICML.Column()})
	require.NoError(t, err)
	require.Equal(t, "f.pdf f.svg f.txt f.caption.tex", bases(done.Files))
	require.Equal(t, 3.25, done.Size.Width)
	require.Equal(t, 8.0, done.Size.Text)
	require.Regexp(t, `f\.caption\.tex\n3\.25 × \d\.\d+ in, smallest text 8 pt$`, done.String())
	svg, err := os.ReadFile(filepath.Join(dir, "f.svg"))
	require.NoError(t, err)
	require.NotContains(t, string(svg), "Accuracy of", "the caption is not in the picture")

	with, err := paperFigure("0123").Export(dir, Export{Formats: []string{"svg"}, Style: ICML.Column(), Caption: true})
	require.NoError(t, err)
	require.Equal(t, "f.svg", bases(with.Files))
	require.Greater(t, with.Size.Height, done.Size.Height)
}

// A figure that has a shape for a reason keeps it in another venue's width.
func TestExportKeepsTheShape(t *testing.T) {
	f := paperFigure("")
	f.Style.Aspect = 1
	square, err := f.forExport(Export{Style: CVPR.Column()})
	require.NoError(t, err)
	require.Equal(t, 1.0, square.Style.Aspect)
	flat, err := StyleNamed("cvpr,height=0.4")
	require.NoError(t, err)
	f, err = f.forExport(Export{Style: flat})
	require.NoError(t, err)
	require.Equal(t, 0.4, f.Style.Aspect)
}

func TestExportOverwritesNoOtherParameters(t *testing.T) {
	for _, format := range []string{"pdf", "svg", "eps", "png", "tex"} {
		dir := t.TempDir()
		how := Export{Formats: []string{format}}
		export := func(params string) Exported {
			done, err := paperFigure(params).Export(dir, how)
			require.NoError(t, err, format)
			return done
		}
		require.Empty(t, export("aaaaaaaa0000").Kept, format)
		require.Empty(t, export("aaaaaaaa0000").Kept, format, "its own picture is drawn anew")
		other := export("bbbbbbbb1111")
		require.Equal(t, filepath.Join(dir, "f."+format), other.Kept, format)
		require.Equal(t, "f-bbbb1111."+format+" f-bbbb1111.txt f-bbbb1111.caption.tex", bases(other.Files), format)
		require.Contains(t, other.String(), "f."+format+" shows other parameters and was kept")
		how.Overwrite = true
		require.Equal(t, "f."+format+" f.txt f.caption.tex", bases(export("bbbbbbbb1111").Files), format)
	}
}

func TestExportWithoutReferences(t *testing.T) {
	f := paperFigure("")
	f.Panels = append(f.Panels, []Panel{{Series: []Series{HLine("bound", 1)}}})
	bare, err := f.forExport(Export{NoReferences: true})
	require.NoError(t, err)
	require.Len(t, bare.Panels, 1, "a panel of nothing else is left out")
	require.Len(t, bare.Panels[0][0].Series, 1)
	require.Len(t, f.Panels[0][0].Series, 2, "the figure itself stays as it is")
}

// A curve with another name keeps its colour, which goes by what it is.
func TestExportRenames(t *testing.T) {
	f := paperFigure("")
	f.Panels[0] = append(f.Panels[0], Panel{Table: &Table{
		Columns: []Column{{Header: "method"}, {Header: "DARTS"}}, Blocks: []Block{{Rows: [][]Entry{
			{{Text: "DARTS"}, {Text: "97"}},
		}}},
	}})
	named, err := f.forExport(Export{Rename: map[string]string{"DARTS": "baseline"}})
	require.NoError(t, err)
	s, table := named.Panels[0][0].Series[0], named.Panels[0][1].Table
	require.Equal(t, []string{"DARTS", "baseline"}, []string{s.Label, s.Entry})
	require.Equal(t, "baseline", table.Columns[1].Header)
	require.Equal(t, "baseline", table.Blocks[0].Rows[0][0].Text)
	require.Equal(t, "DARTS", f.Panels[0][1].Table.Blocks[0].Rows[0][0].Text)
	_, err = f.forExport(Export{Rename: map[string]string{"darts": "x"}})
	require.ErrorContains(t, err, `nothing in it is called "darts": expected one of ["DARTS" "method" "published"]`)
}

// What a column cannot hold is drawn for both, and included there.
func TestExportTakesTwoColumnsWhereOneIsTooNarrow(t *testing.T) {
	tall := paperFigure("")
	for len(tall.Panels) < 8 {
		tall.Panels = append(tall.Panels, tall.Panels[0])
	}
	tables := tableFigure(ICML, table2())
	tables.Panels = append(tables.Panels, paperFigure("").Panels...)
	for _, f := range []Figure{tall, tables} {
		dir := t.TempDir()
		done, err := f.Export(dir, Export{Formats: []string{"tex", "pdf"}, Style: ICML.Column()})
		require.NoError(t, err)
		require.True(t, done.Wide)
		require.Equal(t, 6.75, done.Size.Width)
		require.Contains(t, done.String(), "a column cannot hold it")
		tex, err := os.ReadFile(done.Files[0])
		require.NoError(t, err)
		require.Contains(t, string(tex), "\\begin{figure*}\n\\centering\n\\includegraphics[width=6.75in]")
	}
	done, err := paperFigure("").Export(t.TempDir(), Export{Style: ICML.Column()})
	require.NoError(t, err)
	require.False(t, done.Wide)
}

// What cannot be drawn does not keep a table's text from being written.
func TestExportWritesWhatItCan(t *testing.T) {
	f := tableFigure(Style{Width: 1}, table2())
	done, err := f.Export(t.TempDir(), Export{Formats: []string{"pdf", "tex", "csv"}})
	require.ErrorContains(t, err, "use fewer columns")
	require.Equal(t, f.Name+".tex "+f.Name+".csv", bases(done.Files))
}
