package li2021

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// candidatesOf are the candidates of a set; none before one is chosen.
func candidatesOf(r *table3, set int) []candidate {
	all := r.Part("candidate").Where(func(c candidate) bool { return c.set == set }).Trials()
	if !slices.ContainsFunc(all, func(c candidate) bool { return c.best }) {
		return nil
	}
	return all
}

func againOf(r *table3, set int) []*runs.Record {
	return r.Part("again").Where(func(c candidate) bool { return c.set == set }).Records()
}

func epochs3(r *table3) int {
	s, _ := r.Params.settings("cifar-10") // whose error is one of the rules'
	return s.Epochs
}

func drawTable3(r *table3, f *lab.Picture) {
	p := r.Params
	panel := plots.Panel{
		X: plots.Axis{Label: fmt.Sprintf("test error after %d epochs (%%)", p.Short)},
		Y: plots.Axis{Label: fmt.Sprintf("after %d epochs (%%)", epochs3(r))},
	}
	goesOn := plots.Series{Label: "goes on", Line: plots.NoLine}
	givenUp := plots.Series{Label: "given up", Line: plots.NoLine}
	for set := range p.Sets {
		for _, c := range candidatesOf(r, set) {
			s := &givenUp
			if c.kept {
				s = &goesOn
			}
			s.X, s.Y = append(s.X, c.short), append(s.Y, c.final)
		}
	}
	panel.Series = []plots.Series{goesOn, givenUp}
	f.Style = plots.ICLR.Text()
	f.Row(panel, plots.Panel{Table: protocolTable(r)})
	once := p.TrainParams
	once.Seeds = 1
	bold := ""
	if len(candidatesOf(r, 0)) > 0 {
		bold = fmt.Sprintf("; bold: the %d best after %d epochs, and of these the best at the end", p.Kept, p.Short)
	}
	f.Say("%s%s.", stage1Note(r), bold)
	once.say(f, examplesOf(r), p.imagesOf(p.Data))
}

func stage1Note(r *table3) string {
	if n := len(r.Part(searchPart)[0].Records); n > 0 {
		return fmt.Sprintf("Stage 1: %d searches of ours", n)
	}
	return "Stage 1 was not run: candidates are published cells and random ones"
}

var publishedSets = []number{{2.50, 0.07}, {2.50, 0.09}, {2.60, 0.09}}

func protocolTable(r *table3) *plots.Table {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "candidate"}, {Header: fmt.Sprintf("epoch %d", r.Params.Short), Group: "test error (%)"},
		{Header: fmt.Sprintf("epoch %d", epochs3(r)), Group: "test error (%)"},
		{Header: "the paper's,\nepoch 600"},
	}}
	var end plots.Block
	for set := range r.Params.Sets {
		title, text := "", "the best, other seeds"
		if r.Params.Sets > 1 {
			title = fmt.Sprintf("set %d", set+1)
			text += ", " + title
		}
		block := plots.Block{Title: title}
		for _, c := range candidatesOf(r, set) {
			block.Rows = append(block.Rows, []plots.Entry{
				{Text: candidateTitle(c.name)}, {Text: fmt.Sprintf("%.1f", c.short), Bold: c.kept},
				{Text: fmt.Sprintf("%.1f", c.final), Bold: c.best}, {},
			})
		}
		if len(block.Rows) > 0 {
			t.Blocks = append(t.Blocks, block)
		}
		mean, _ := errorEntries(againOf(r, set), "test_error")
		end.Rows = append(end.Rows, []plots.Entry{{Text: text}, {}, mean, {}})
	}
	for i, set := range publishedSets {
		end.Rows = append(end.Rows, []plots.Entry{
			{Text: fmt.Sprintf("the paper's, set %d", i+1), Grey: true}, {}, {}, printedError(set),
		})
	}
	t.Blocks = append(t.Blocks, end)
	return t
}

func candidateTitle(name string) string {
	p, ok := supernet.Published[name]
	switch {
	case !ok:
		return name
	case p.Searched == "CIFAR-10":
		return p.Method
	}
	return fmt.Sprintf("%s (%s)", p.Method, p.Searched)
}
