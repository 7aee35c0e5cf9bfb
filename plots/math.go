package plots

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"
)

// Between dollar signs stands the part of TeX's language that labels need: letters in italics, _ and ^ with braces to
// any depth, named symbols (\theta, \nabla, \le), named functions (\log), \mathrm{…} for upright words, \| for ‖,
// \sqrt{…} with a bar over all of it, and spaces as TeX puts them around operators and relations. Symbols can as well
// be written as they are: θ, ∇, ≤. Outside, \$ is a dollar sign.

// atom is a symbol, a space or a group, with what is set below and above it.
type atom struct {
	char     rune // 0: a group, or only a space
	italic   bool // a letter of a formula
	bold     bool
	group    []atom
	root     bool // a bar and the sign of a root go over the group
	class    class
	space    vg.Length // in em, before the atom
	after    rune      // of running text: the one before, for kerning
	sub, sup []atom
}

// class decides the space around an atom.
type class byte

const (
	ordinary    class = iota
	operator          // + − · ×
	relation          // = ≤ ∈
	opening           // (
	punctuation       // ,
	function          // log
)

type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) next() rune {
	if p.rest == "" {
		return 0
	}
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

func parseText(text string) ([]atom, error) {
	p := &parser{rest: text}
	var atoms []atom
	var last rune
	for p.rest != "" {
		switch {
		case p.take(`\$`):
			atoms, last = append(atoms, atom{char: '$'}), '$'
		case p.take("$"):
			atoms, last = append(atoms, atom{group: p.formula('$')}), 0
		default:
			r := p.textRune()
			atoms = append(atoms, atom{char: r, after: last})
			last = r
		}
	}
	return atoms, p.err
}

// textRune takes one rune of running text, or a ligature.
func (p *parser) textRune() rune {
	for _, l := range []struct {
		letters  string
		ligature rune
	}{{"ffi", 'ﬃ'}, {"ffl", 'ﬄ'}, {"ff", 'ﬀ'}, {"fi", 'ﬁ'}, {"fl", 'ﬂ'}} {
		if p.take(l.letters) {
			return l.ligature
		}
	}
	if p.take("\n") {
		return ' '
	}
	return p.next()
}

func (p *parser) formula(closing rune) []atom {
	var atoms []atom
	for {
		r := p.next()
		switch r {
		case closing:
			return atoms
		case 0, '$', '}':
			p.fail("formula ends at %q: expected %q", orEnd(r), closing)
			return atoms
		case ' ':
		case '_', '^', '\'':
			if len(atoms) == 0 {
				atoms = append(atoms, atom{})
			}
			p.script(&atoms[len(atoms)-1], r)
		default:
			atoms = append(atoms, p.atom(r))
		}
	}
}

func orEnd(r rune) string {
	if r == 0 {
		return "the end"
	}
	return string(r)
}

// script reads a subscript or superscript.
func (p *parser) script(a *atom, sign rune) {
	to := &a.sup
	if sign == '_' {
		to = &a.sub
	}
	if sign == '\'' {
		*to = append(*to, atom{char: '′'})
		return
	}
	if len(*to) > 0 {
		p.fail("two %q on one symbol: expected braces, x_{a_b}", sign)
	}
	for p.take(" ") {
	}
	r := p.next()
	if r == 0 || r == '$' || r == '}' || r == '_' || r == '^' {
		p.fail("%q is followed by %q: expected a symbol or a group in braces", sign, orEnd(r))
		p.rest = string(r) + p.rest
		return
	}
	*to = append(*to, p.atom(r))
}

func (p *parser) atom(r rune) atom {
	switch r {
	case '{':
		return atom{group: p.formula('}')}
	case '\\':
		return p.command()
	case '√':
		if p.take("{") {
			return atom{group: p.formula('}'), root: true}
		}
	}
	return symbol(r)
}

func (p *parser) command() atom {
	name := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, letters))]
	if name == "" {
		r := p.next()
		if a, ok := signs[r]; ok {
			return a
		}
		p.fail(`unknown command \%s: see \theta, \nabla, \log, \mathrm{…}, \|`, orEnd(r))
		return atom{}
	}
	p.rest = p.rest[len(name):]
	switch {
	case name == "sqrt" && p.take("{"):
		return atom{group: p.formula('}'), root: true}
	case name == "mathrm" || name == "text":
		return atom{group: p.upright(name)}
	case slices.Contains(functions, name):
		return atom{group: uprightAtoms(name), class: function}
	case symbols[name] != 0:
		return symbol(symbols[name])
	}
	p.fail(`unknown command \%s: see \theta, \nabla, \log, \mathrm{…}, \|`, name)
	return atom{}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (p *parser) upright(name string) []atom {
	text, rest, ok := strings.Cut(p.rest, "}")
	if !ok || !strings.HasPrefix(text, "{") {
		p.fail(`\%s: expected a text in braces`, name)
		return nil
	}
	p.rest = rest
	return uprightAtoms(text[1:])
}

func uprightAtoms(text string) []atom {
	var atoms []atom
	var last rune
	for _, r := range text {
		atoms = append(atoms, atom{char: r, after: last})
		last = r
	}
	return atoms
}

// signs are the commands of one sign.
var signs = map[rune]atom{
	'|': {char: '‖'}, '{': {char: '{', class: opening}, '}': {char: '}'},
	'$': {char: '$'}, '_': {char: '_'}, '%': {char: '%'}, '&': {char: '&'}, '#': {char: '#'},
	',': {space: 3. / 18}, ':': {space: 4. / 18}, ';': {space: 5. / 18}, ' ': {space: 6. / 18}, '!': {space: -3. / 18},
}

var functions = strings.Fields("log ln exp min max sup inf lim arg argmin argmax det dim Pr tr sin cos tanh")

// symbols are the commands that stand for one symbol.
var symbols = map[string]rune{
	"alpha": 'α', "beta": 'β', "gamma": 'γ', "delta": 'δ', "epsilon": 'ϵ', "varepsilon": 'ε', "zeta": 'ζ', "eta": 'η',
	"theta": 'θ', "vartheta": 'ϑ', "iota": 'ι', "kappa": 'κ', "lambda": 'λ', "mu": 'μ', "nu": 'ν', "xi": 'ξ', "pi": 'π',
	"rho": 'ρ', "sigma": 'σ', "tau": 'τ', "upsilon": 'υ', "phi": 'ϕ', "varphi": 'φ',
	"chi": 'χ', "psi": 'ψ', "omega": 'ω',
	"Gamma": 'Γ', "Delta": 'Δ', "Theta": 'Θ', "Lambda": 'Λ', "Xi": 'Ξ', "Pi": 'Π', "Sigma": 'Σ', "Upsilon": 'Υ',
	"Phi": 'Φ', "Psi": 'Ψ', "Omega": 'Ω',
	"nabla": '∇', "partial": '∂', "ell": 'ℓ', "hbar": 'ℏ', "infty": '∞', "top": '⊤', "sum": '∑', "prod": '∏',
	"int": '∫', "sqrt": '√', "in": '∈', "notin": '∉', "subset": '⊂', "subseteq": '⊆', "cup": '∪', "cap": '∩',
	"le": '≤', "leq": '≤', "ge": '≥', "geq": '≥', "ne": '≠', "neq": '≠', "ll": '≪', "gg": '≫', "approx": '≈',
	"sim": '∼', "simeq": '≃', "equiv": '≡', "propto": '∝', "to": '→', "rightarrow": '→', "leftarrow": '←',
	"mapsto": '↦', "forall": '∀', "exists": '∃', "pm": '±', "mp": '∓', "times": '×', "cdot": '·', "odot": '⊙',
	"oplus": '⊕', "otimes": '⊗', "circ": '∘', "ast": '∗', "star": '⋆', "ldots": '…', "dots": '…', "cdots": '⋯',
	"langle": '⟨', "rangle": '⟩', "lfloor": '⌊', "rfloor": '⌋', "lceil": '⌈', "rceil": '⌉', "mid": '∣',
	"Vert": '‖', "prime": '′', "dagger": '†', "emptyset": '∅',
}

func symbol(r rune) atom {
	a := atom{char: r, italic: true}
	switch {
	case r == '-':
		a = atom{char: '−', class: operator}
	case r == '*':
		a = atom{char: '∗', class: operator}
	case strings.ContainsRune("+−±∓·×⋅∗∘⊙⊕⊗∪∩⋆", r):
		a.class = operator
	case strings.ContainsRune("=<>≤≥≠≪≫≈∼≃≡∝∈∉⊂⊆→←↦∣:", r):
		a.class = relation
	case strings.ContainsRune("([⟨⌊⌈", r):
		a.class = opening
	case r == ',' || r == ';':
		a.class = punctuation
	}
	return a
}

func (f Font) glyph(a atom) *glyph {
	switch {
	case a.char == 0:
		return nil
	case a.italic:
		return f.lookup(italic(a.char))
	case a.bold:
		return f.lookupBold(a.char)
	}
	return f.lookup(a.char)
}

func embolden(atoms []atom) {
	for i := range atoms {
		a := &atoms[i]
		a.bold = true
		for _, part := range [][]atom{a.group, a.sub, a.sup} {
			embolden(part)
		}
	}
}

// italic returns a formula's italic letter. Greek capitals are upright, as in TeX.
func italic(r rune) rune {
	switch {
	case r == 'h': // has its place elsewhere
		return 'ℎ'
	case 'a' <= r && r <= 'z':
		return r - 'a' + '𝑎'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + '𝐴'
	case 'α' <= r && r <= 'ω':
		return r - 'α' + '𝛼'
	}
	if v, ok := map[rune]rune{'∂': '𝜕', 'ϵ': '𝜖', 'ϑ': '𝜗', 'ϰ': '𝜘', 'ϕ': '𝜙', 'ϱ': '𝜚', 'ϖ': '𝜛'}[r]; ok {
		return v
	}
	return r
}

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
