package li2021

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// InstrumentsQuick has one search by DARTS on its space, and one by GAEA PC-DARTS, at the
// quick scale of Figure 1, left, which are watched after every epoch. The project ships
// them, and those of instruments201.
var InstrumentsQuick = watched(Figure1LeftQuick)

// InstrumentsLarge has the middle scale of Figure 1, left, for a night on two cores. It
// was not run.
var InstrumentsLarge = watched(Figure1LeftLarge)

// InstrumentsPaper has the paper's settings of the searches. It was not run.
var InstrumentsPaper = watched(Figure1LeftPaper)

func watched(p Figure1Params) Figure1Params {
	p.Rows = []string{"darts@darts", "gaea-pc-darts@darts"}
	p.Seeds, p.Instruments, p.EvaluateEvery = 1, 4, 1
	return p
}

// instruments201 has searches by DARTS and by GAEA DARTS on NAS-Bench-201.
var instruments201 = []string{"Rows=darts@nasbench201,gaea-darts@nasbench201"}

const (
	instrumentsID    = "li2021/instruments"
	instrumentsTitle = "What a search is watched by: entropy, discretisation, curvature, stationarity, Condition 6"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: instrumentsID, Paper: paper, Title: instrumentsTitle, Kind: "figure",
		Notebook: "notebooks/li2021/instruments.ipynb",
		Cost: catalog.Cost{
			Quick: "ten minutes on two cores, half of it to compile; the project ships its searches",
			Paper: "hours a search on a GPU, days on two cores",
		},
		Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Quick, Set: instruments201}},
	}, InstrumentsQuick, InstrumentsPaper, Instruments,
		catalog.Preset[Figure1Params]{Scale: catalog.Large, Params: InstrumentsLarge})
}

// InstrumentsResult are searches with what the instruments have read of them.
type InstrumentsResult struct{ *Figure1LeftResult }

// Instruments runs what the run store lacks of the searches, and reads the instruments
// after every evaluation. See [Figure1Left] for cancelling and errors; it is one where
// there are no instruments.
func Instruments(ctx context.Context, p Figure1Params) (*InstrumentsResult, error) {
	if p.Instruments < 1 {
		return nil, catalog.Usagef("parameters of the instruments: Instruments is %d, want at least 1: the products "+
			"with Hessians that they may take", p.Instruments)
	}
	r, err := p.onCells(ctx, instrumentsID, "cells", "nasbench201")
	if err != nil {
		return nil, err
	}
	return &InstrumentsResult{r}, nil
}

// Figure draws the panels of [Figure1LeftResult] with those of the instruments, and
// below them the cells of every search at its end, edges as wide as θ; edges on which
// the largest weight is that of the operation that is best alone stand out.
func (r *InstrumentsResult) Figure() plots.Figure {
	f := r.Figure1LeftResult.Figure()
	f.Name, f.Meta = "li2021-instruments", study.Meta(instrumentsTitle, r.Scale, r.Params)
	curves := slices.DeleteFunc(slices.Concat(f.Panels...), func(p plots.Panel) bool {
		return len(p.Series) == 0 // such as the entropy of edges that have no weights
	})
	f.Panels = slices.Collect(slices.Chunk(curves, 2))
	for _, of := range r.all {
		for _, record := range of.ran()[:min(1, len(of.ran()))] {
			a, err := of.animation(record)
			if err != nil {
				panic(err) // the searches were on cells with two inputs
			}
			last := len(a.Frames) - 1
			for _, cells := range a.Frames[last].Panels {
				cells[0].Title = fmt.Sprintf("%s, %s", of.row.title(), a.Labels[last])
				f.Panels = append(f.Panels, cells)
			}
		}
	}
	f.Caption = searchCaption(r.Params.SearchParams, r.all, r.Params) + instrumentCaption +
		" Cells: edges are as wide as $θ$; where the largest is that of the operation with the least loss alone, " +
		"they stand out."
	return f
}

// Check judges that searches begin at uniform weights and do not collapse, and for
// searches by GAEA that θ comes as near to a stationary point as Theorem 1 says.
func (r *InstrumentsResult) Check() []runs.Claim {
	var claims []runs.Claim
	for _, f := range r.all {
		claims = append(claims, r.checkStart(f))
	}
	claims = append(claims, r.checkCollapse())
	for _, f := range r.all {
		if search.Methods[f.row.method()].Hold == search.OnSimplex { // which the theorem is about
			claims = append(claims, r.checkBound(f))
		}
	}
	return claims
}

// checkBound judges Δ against its bound at all evaluations of the searches of a row.
func (r *InstrumentsResult) checkBound(f found) runs.Claim {
	c := verdict.Claim("own: "+f.row.named()+": evaluations at which Δ lies above Theorem 1's bound of the constants "+
		"read until then", "Li+ 2021, Theorem 1")
	above, of := 0, 0
	for _, record := range f.ran() {
		bounds := f.bounds(f.readingsOf(record))
		for i, delta := range record.Series["stationarity"] {
			if of++; delta > bounds[i] {
				above++
			}
		}
	}
	if of == 0 {
		return verdict.NotRun(c, "no search was run")
	}
	return verdict.None(c, above, of)
}
