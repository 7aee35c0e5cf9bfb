package plots

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// Property tests draw the same cases in every run; -rapid.seed=N draws others.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}

func width(text string) float64 { return float64(LatinModern.line(text, 10).width) }

func TestEveryGlyphThatPapersNeed(t *testing.T) {
	for _, r := range "αβγδεζηθικλμνξοπρστυφχψωϵϑϕΓΔΘΛΞΠΣΥΦΨΩ∇∂∈∉ℓ‖≤≥≠≈∼±−·×⊙∘∞→∑∏∫√′†…–—’“”éöüß⟨⟩|/\\" {
		require.NotNil(t, LatinModern.lookup(r), "%c", r)
		require.NotNil(t, LatinModern.lookup(italic(r)), "italic %c", r)
	}
	for name, r := range symbols {
		require.NotNil(t, LatinModern.glyph(symbol(r)), `\%s`, name)
	}
	for r := 'A'; r <= 'z'; r++ {
		require.NotNil(t, LatinModern.lookup(italic(r)), "%c", r)
	}
}

func TestScripts(t *testing.T) {
	require.Greater(t, width("$x_t$"), width("$x$"))
	require.Less(t, width("$x_t$"), width("$xt$"), "a script is smaller")
	sub, sup := LatinModern.line("$x_t$", 10).glyphs[1], LatinModern.line("$x^t$", 10).glyphs[1]
	require.Less(t, float64(sub.y), 0.0)
	require.Greater(t, float64(sup.y), 0.0)
	require.Equal(t, vg.Length(7), sub.size)

	both := LatinModern.line("$x_a^b$", 10)
	require.Equal(t, both.glyphs[1].x, both.glyphs[2].x, "scripts stand one above the other")
	nested := LatinModern.line("$x_{a_b}$", 10).glyphs[2]
	require.Less(t, nested.y, sub.y)
	require.GreaterOrEqual(t, float64(nested.size), 5.0, "nested scripts stay legible")
}

func TestSpacesInFormulas(t *testing.T) {
	require.InDelta(t, width("$a+b$"), width("$a + b$"), 1e-9, "spaces in a formula mean nothing")
	plus := width("$+$")
	require.InDelta(t, width("$a$")+width("$b$")+plus+10*8./18, width("$a+b$"), 1e-9)
	require.InDelta(t, width("$−$")+width("$b$"), width("$-b$"), 1e-9, "a sign has no spaces")
	require.InDelta(t, width("$−$")+width("$1$"), width("$-1$"), 1e-9)
	require.InDelta(t, width("$a$")+width("$b$")+10*3./18, width(`$a\,b$`), 1e-9)
	require.Greater(t, width("a b"), width("ab"))
}

func TestCommandsAreTheirSymbols(t *testing.T) {
	for command, symbol := range map[string]string{
		`$\theta_\alpha$`: "$θ_α$", `$\nabla f$`: "$∇ f$", `$\|w\|$`: "$‖w‖$", `$a \le b$`: "$a ≤ b$", `\$5`: `$\$5$`,
	} {
		require.Equal(t, LatinModern.line(symbol, 10).glyphs, LatinModern.line(command, 10).glyphs, command)
	}
	require.Equal(t, "θ_α+Δα and ‖w‖_2 fine", plain(`$\theta_{α + Δα}$ and $\|w\|_2$ fine`))
	upright := LatinModern.line("x", 10)
	require.NotEqual(t, upright.glyphs, LatinModern.line("$x$", 10).glyphs, "letters of a formula are italic")
	require.Equal(t, LatinModern.line("log", 10).glyphs, LatinModern.line(`$\log$`, 10).glyphs, "functions are not")
}

// A root's bar reaches over all of what is under it, whatever its height.
func TestRootsHaveABar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		formula := rapid.SampledFrom([]string{"x", "L/μ", "y^⊤K_α^{-1}y/n_T", `\sqrt{x}+1`, `\log|C|/2`}).
			Draw(t, "formula")
		inside, root := LatinModern.line("$"+formula+"$", 10), LatinModern.line(`$\sqrt{`+formula+"}$", 10)
		require.Greater(t, float64(root.height), float64(inside.height))
		require.Greater(t, float64(root.depth), float64(inside.depth))
		require.InDelta(t, float64(inside.width)+10*(rootWidth+rootPad), float64(root.width), 1e-9)
		require.Len(t, root.glyphs, len(inside.glyphs)+1)
		right := vg.Length(0)
		for _, part := range root.glyphs[0].path {
			right = max(right, 10*part.Pos.X)
		}
		require.InDelta(t, float64(root.width), float64(right), 1e-9)
		require.Equal(t, root.glyphs, LatinModern.line("$√{"+formula+"}$", 10).glyphs)
	})
	require.Equal(t, "√(L/μ) and √x", plain(`$\sqrt{L/μ}$ and $\sqrt{x}$`))
	require.Equal(t, `$\sqrt{L/\mu }$`, latexText(`$\sqrt{L/μ}$`))
	require.ErrorContains(t, checkText(`$\sqrt{x$`), "expected '}'")
}

func TestTextThatCannotBeSet(t *testing.T) {
	for text, want := range map[string]string{
		"$x": "the end", "$x_$": "expected a symbol", "$x^{a$": "expected '}'", "$a}$": `"}"`, "$x_a_b$": "two",
		`$\foo$`: `\foo`, `$\mathrm x$`: "braces", "漢": "no font", `$\`: "unknown command", "$_": "expected a symbol",
	} {
		require.ErrorContains(t, checkText(text), want, text)
	}
	for _, text := range []string{"", "$$", "$_a$", "$'$", "a\nb", `\$`, "$x'_a$", "100 %"} {
		require.NoError(t, checkText(text), text)
	}
}

func TestNoTextPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune(`$$$__^^{}{}\\ab θ|'+-=,(√`+"\n"))).Draw(t, "text")
		_ = checkText(text)
		_ = plain(text)
		for _, l := range LatinModern.lines(text, 8, 50) {
			require.LessOrEqual(t, float64(l.width), 50+1e-9)
		}
	})
}

func TestLinesBreakOutsideFormulas(t *testing.T) {
	text := `one two $a + b$ three \$4 $c$`
	require.Equal(t, []string{"one", "two", "$a + b$", "three", `\$4`, "$c$"}, words(text))
	lines := LatinModern.lines(strings.Repeat("word ", 40), 8, 100)
	require.Greater(t, len(lines), 5)
	for _, l := range lines {
		require.LessOrEqual(t, float64(l.width), 100.0)
	}
	require.Len(t, LatinModern.lines("a\nb", 8, 100), 2)
	require.Empty(t, LatinModern.lines("", 8, 100))
	long := LatinModern.lines(strings.Repeat("x", 100), 8, 100)
	require.Len(t, long, 1)
	require.InDelta(t, 100, float64(long[0].width), 1e-9, "made smaller, never cut")
}
