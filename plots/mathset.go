package plots

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"
)

// Sizes and shifts of scripts, in em of what they are set on.
const (
	scriptSize  = 0.7
	scriptLeast = 0.55 // of the text's size: scripts of scripts stay legible
	subDrop     = 0.18
	supRise     = 0.38
)

// set appends atoms with their baseline at y; full is the size of the text. Scripts get no space around operators.
func (l *textLine) set(atoms []atom, size, full, y vg.Length) {
	before := opening
	for i, a := range atoms {
		if a.class == operator && (before == opening || before == operator || before == relation || i == len(atoms)-1) {
			a.class = ordinary // a sign, as in −1
		}
		l.width += (a.space + l.font.kern(a.after, a.char)) * size
		if i > 0 && size == full {
			l.width += between(before, a.class) * size
		}
		l.setAtom(a, size, full, y)
		before = a.class
	}
}

func between(a, b class) vg.Length {
	switch {
	case b == operator || a == operator:
		return 4. / 18
	case b == relation || a == relation:
		return 5. / 18
	case a == punctuation, a == function && b == ordinary:
		return 3. / 18
	}
	return 0
}

func (l *textLine) setAtom(a atom, size, full, y vg.Length) {
	if g := l.font.glyph(a); g != nil {
		l.put(g, size, y)
	}
	if a.root {
		l.setRoot(a.group, size, full, y)
	} else {
		l.set(a.group, size, full, y)
	}
	small := max(scriptSize*size, scriptLeast*full)
	start, end := l.width, l.width
	for _, s := range []struct {
		atoms []atom
		shift vg.Length
	}{{a.sub, -subDrop * size}, {a.sup, supRise * size}} {
		l.width = start
		l.set(s.atoms, small, full, y+s.shift)
		end = max(end, l.width)
	}
	l.width = end
}

func (l *textLine) setRoot(atoms []atom, size, full, y vg.Length) {
	inside := textLine{font: l.font}
	inside.set(atoms, size, full, 0)
	l.put(rootSign(inside.width/size, inside.height/size, inside.depth/size), size, y)
	l.set(atoms, size, full, y)
	l.width += rootPad * size
}

// The root sign, in em: its width without the bar, the bar's thickness, gap and overhang.
const (
	rootWidth = 0.5
	rootBar   = 0.045
	rootGap   = 0.1
	rootPad   = 0.06
)

func rootSign(width, height, depth vg.Length) *glyph {
	top, bottom := height+rootGap+rootBar, -depth-0.03
	knee := bottom + 0.55*(top-bottom)
	path := polygon([]vg.Point{
		{X: 0.02, Y: knee - 0.09}, {X: 0.13, Y: knee}, {X: 0.27, Y: bottom + 0.14}, {X: rootWidth - 0.05, Y: top},
		{X: rootWidth + width + rootPad, Y: top}, {X: rootWidth + width + rootPad, Y: top - rootBar},
		{X: rootWidth - 0.02, Y: top - rootBar}, {X: 0.275, Y: bottom}, {X: 0.245, Y: bottom},
		{X: 0.1, Y: knee - 0.07}, {X: 0.04, Y: knee - 0.115},
	})
	return &glyph{path: path, advance: rootWidth, height: top, depth: -bottom}
}

// checkText returns an error for an open formula, an unknown command, or a symbol that no font has.
func checkText(text string) error {
	atoms, err := parseText(text)
	if err == nil {
		err = checkGlyphs(atoms)
	}
	if err != nil {
		return fmt.Errorf("text %q: %w", text, err)
	}
	return nil
}

func checkGlyphs(atoms []atom) error {
	for _, a := range atoms {
		if a.char != 0 && LatinModern.glyph(a) == nil {
			return fmt.Errorf("no font here has %q (%U): expected a symbol of Latin Modern or STIX", a.char, a.char)
		}
		for _, part := range [][]atom{a.group, a.sub, a.sup} {
			if err := checkGlyphs(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain is text without markup, for metadata.
func plain(text string) string {
	atoms, _ := parseText(text)
	return splitLigatures.Replace(plainAtoms(atoms))
}

var splitLigatures = strings.NewReplacer("ﬃ", "ffi", "ﬄ", "ffl", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl")

func plainAtoms(atoms []atom) string {
	var b strings.Builder
	for _, a := range atoms {
		if a.char != 0 {
			b.WriteRune(a.char)
		}
		switch inside := plainAtoms(a.group); {
		case a.root && utf8.RuneCountInString(inside) > 1:
			b.WriteString("√(" + inside + ")")
		case a.root:
			b.WriteString("√" + inside)
		default:
			b.WriteString(inside)
		}
		if len(a.sub) > 0 {
			b.WriteString("_" + plainAtoms(a.sub))
		}
		if len(a.sup) > 0 {
			b.WriteString("^" + plainAtoms(a.sup))
		}
	}
	return b.String()
}
