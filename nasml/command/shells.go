package command

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// A shell completes words by asking this program: its script calls the hidden verb complete with the words up to the
// cursor, of which the last is the one to complete. The answer is a line for each word that fits, with what it means
// behind a tab, or filesFit alone where the shell's own completion of files is wanted.
//
// The libraries for kong take one program name and one word a position; this name has three
// words (go tool nasml), and a setting completes by the figures before it.

//go:embed shells
var shellScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help says where the script goes.
func (*completionCmd) Help() string {
	return `For go tool nasml in a checkout, and for this program where it is on the PATH. In this shell, and in every
new one by the same line in ~/.bashrc or ~/.zshrc:

  source <(go tool nasml completion bash)
  source <(go tool nasml completion zsh)       (after compinit)
  go tool nasml completion fish > ~/.config/fish/conf.d/nasml.fish`
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]`)

// Run prints the shell's script.
func (v *completionCmd) Run(c console) error {
	script, err := shellScripts.ReadFile("shells/complete." + v.Shell)
	if err != nil {
		return fmt.Errorf("the script of %s: %w", v.Shell, err)
	}
	program := "nasml"
	if name := programName(); !strings.Contains(name, " ") {
		program = filepath.Base(name)
	}
	_, err = strings.NewReplacer("PROGRAM", program, "FUNCTION", notInNames.ReplaceAllString(program, "_")).
		WriteString(c.Out, string(script))
	return err
}

type completeCmd struct {
	Word []string `arg:"" optional:"" passthrough:"" help:"Words of the command line after the program's name."`
}

// filesFit asks the shell to complete the name of a file.
const filesFit = ":files"

// Run prints the words that fit.
func (v *completeCmd) Run(c console, app *kong.Kong) error {
	words := v.Word
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	var text strings.Builder
	for _, fit := range fits(app.Model.Node, words) {
		text.WriteString(strings.TrimRight(fit.Word+"\t"+fit.Meaning, "\t") + "\n")
	}
	_, err := c.Out.Write([]byte(text.String()))
	return err
}

type fit struct{ Word, Meaning string }

type line struct {
	node  *kong.Node
	args  []string    // words that are arguments of the verb
	value *kong.Value // of the flag that the next word is for; nil: none
	flags bool        // may come, because no -- has
}

func fits(app *kong.Node, words []string) []fit {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	l := readLine(app, words[:len(words)-1])
	flag, begun, isFlag := strings.Cut(last, "=")
	before := ""
	var all []fit
	switch {
	case l.value != nil:
		all = l.values(l.value, last)
	case l.flags && strings.HasPrefix(last, "-") && isFlag:
		before = flag + "="
		if f := l.flag(flag); f != nil {
			all = l.values(f.Value, begun)
		}
	case l.flags && strings.HasPrefix(last, "-"):
		all = l.allFlags()
	default:
		all = l.words(last)
	}
	var fitting []fit
	for _, f := range all {
		if f.Word == filesFit {
			return []fit{f}
		}
		if f.Word = before + f.Word; strings.HasPrefix(f.Word, last) {
			fitting = append(fitting, f)
		}
	}
	return fitting
}

func readLine(app *kong.Node, words []string) *line {
	l := &line{node: app, flags: true}
	for _, word := range words {
		name, _, hasValue := strings.Cut(word, "=")
		child := slices.IndexFunc(l.node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case l.value != nil:
			l.value = nil
		case l.flags && word == "--":
			l.flags = false
		case l.flags && strings.HasPrefix(word, "-"):
			if f := l.flag(name); f != nil && !hasValue && !f.IsBool() {
				l.value = f.Value
			}
		case child >= 0:
			l.node = l.node.Children[child]
		default:
			l.args = append(l.args, word)
		}
	}
	return l
}

func (l *line) flag(word string) *kong.Flag {
	for _, f := range slices.Concat(l.node.AllFlags(true)...) {
		if word == "--"+f.Name || (f.Short != 0 && word == "-"+string(f.Short)) {
			return f
		}
	}
	return nil
}

func (l *line) allFlags() []fit {
	var all []fit
	for _, f := range slices.Concat(l.node.AllFlags(true)...) {
		all = append(all, fit{"--" + f.Name, firstSentence(f.Help)})
		if f.Tag.Negatable != "" {
			all = append(all, fit{"--no-" + f.Name, firstSentence(f.Help)})
		}
	}
	return all
}

func (l *line) words(begun string) []fit {
	var all []fit
	for _, child := range l.node.Children {
		if !child.Hidden {
			all = append(all, fit{child.Name, firstSentence(child.Help)})
		}
	}
	if given := l.node.Positional; len(given) > 0 {
		next := given[min(len(l.args), len(given)-1)]
		if len(l.args) < len(given) || next.IsCumulative() {
			all = append(all, l.values(next, begun)...)
		}
	}
	return all
}

// values returns a flag's or argument's values, by its tag complete or its enum.
func (l *line) values(v *kong.Value, begun string) []fit {
	kind := v.Tag.Get("complete")
	if of, ok := valueKinds[kind]; ok {
		return of(l, begun)
	}
	if v.Enum != "" {
		return plain(slices.Sorted(maps.Keys(v.EnumMap()))...)
	}
	if v.Flag == nil || slices.Contains([]string{"DIR", "FILE"}, v.Flag.PlaceHolder) {
		return plain(filesFit)
	}
	return nil
}

// valueKinds are the values that are known here, by the tag complete.
var valueKinds = map[string]func(l *line, begun string) []fit{
	"figure": func(*line, string) (all []fit) {
		for _, e := range catalog.All() {
			all = append(all, fit{e.ID, e.Title})
		}
		return all
	},
	"paper": func(*line, string) []fit {
		var papers []string
		for _, e := range catalog.All() {
			paper, _, _ := strings.Cut(e.ID, "/")
			papers = append(papers, paper)
		}
		return plain(slices.Compact(papers)...)
	},
	"setting": (*line).settings,
	"scale": func(l *line, _ string) []fit {
		scales := []string{catalog.Quick, catalog.Paper}
		for _, e := range l.figures() {
			scales = append(scales, e.Scales()...)
		}
		slices.Sort(scales)
		return plain(slices.Compact(scales)...)
	},
	"format": func(_ *line, begun string) []fit {
		var all []fit
		before := begun[:strings.LastIndex(begun, ",")+1]
		for _, format := range plots.Formats() {
			if !slices.Contains(strings.Split(before, ","), format) {
				all = append(all, fit{Word: before + format})
			}
		}
		return all
	},
	"style": func(*line, string) []fit {
		var styles []string
		for _, venue := range plots.Venues() {
			styles = append(styles, venue, venue+"/column", venue+"/text")
		}
		return plain(styles...)
	},
	"data": func(*line, string) []fit {
		names := slices.Collect(maps.Keys(tables))
		if files, err := data.Status(); err == nil {
			for _, f := range files {
				names = append(names, string(f.Name))
			}
		}
		slices.Sort(names)
		return plain(slices.Compact(names)...)
	},
	"none": func(*line, string) []fit { return nil },
}

func (l *line) figures() []catalog.Entry {
	var entries []catalog.Entry
	for _, id := range l.args {
		if e, err := catalog.Lookup(id); err == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// settings returns the parameters of the figures on the line, or after = the parameter's values in the presets.
func (l *line) settings(begun string) []fit {
	name, _, valued := strings.Cut(begun, "=")
	var all []fit
	for _, e := range l.figures() {
		fields, err := e.Fields()
		if err != nil {
			continue
		}
		for _, f := range fields {
			switch {
			case !valued:
				all = append(all, fit{f.Name + "=", f.Type + ": " + firstSentence(f.Meaning)})
			case f.Name == name:
				all = append(all, settingValues(f, e)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fit) int { return strings.Compare(a.Word, b.Word) })
	return slices.CompactFunc(all, func(a, b fit) bool { return a.Word == b.Word })
}

func settingValues(f catalog.Field, e catalog.Entry) []fit {
	var all []fit
	for _, scale := range e.Scales() {
		if text, ok := asWord(f.Values[scale]); ok {
			all = append(all, fit{f.Name + "=" + text, "as at the scale " + scale})
		}
	}
	if f.Type == "bool" {
		all = append(all, fit{Word: f.Name + "=true"}, fit{Word: f.Name + "=false"})
	}
	for _, name := range e.Choices(context.Background(), f.Name) {
		all = append(all, fit{Word: f.Name + "=" + name})
	}
	return all
}

// asWord formats a JSON value for --set if it is one shell word.
func asWord(value json.RawMessage) (string, bool) {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return "", false
	}
	list, isList := decoded.([]any)
	if !isList {
		list = []any{decoded}
	}
	var parts []string
	for _, v := range list {
		switch v.(type) {
		case string, float64, bool:
			parts = append(parts, fmt.Sprint(v))
		default:
			return "", false
		}
	}
	text := strings.Join(parts, ",")
	return text, text != "" && !strings.ContainsAny(text, " \t\n'\"\\$`")
}

func plain(words ...string) []fit {
	var all []fit
	for _, word := range words {
		if word != "" {
			all = append(all, fit{Word: word})
		}
	}
	return all
}

func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.Join(strings.Fields(text), " "), ". ")
	return runs.Shortened(strings.TrimSuffix(text, "."), mostMeaning)
}

const mostMeaning = 90
