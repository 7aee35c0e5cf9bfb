package roberts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/roberts/internal/searching"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// SearchParams are the parameters of real searches: α and W are trained on the outputs of a teacher f_σα*(x, W*), and
// what is found is checked. The paper assumes the search to be perfect and has none; all values are ours.
type SearchParams struct {
	Spaces []string `validate:"min=1,unique"` // "relu/tanh/sin": operations of a space
	// α*: of a space of h operations the first h, divided by their sum
	Teacher []float64 `validate:"dive,positive"`
	// of the labels, in standard deviations of the signal; 0: realizable
	Noise        []float64 `validate:"min=1,unique,dive,gte=0"`
	Starts       []string  `validate:"min=1,dive,oneof=near random"` // of W: "near" W* or "random"
	Inputs       int       `validate:"gte=1"`                        // k
	Width        int       `validate:"gte=1"`                        // d of the teacher
	Student      int       `validate:"gte=1"`                        // d of the student; another width: another v
	Spread       float64   `validate:"positive"`                     // of the teacher's pre-activations, sd
	Train, Valid int       `validate:"gte=1"`                        // examples: W is trained on Train, α on Valid
	Update       string    // of α, a name of simplex.Updates
	Eta          float64   `validate:"positive"` // step size of α
	LearningRate float64   `validate:"positive"` // of W (Adam)
	Steps        int       `validate:"gte=1"`    // of both, full batches
	Seeds        int       `validate:"gte=1"`
	Confidence   float64   `validate:"gt=0,lt=1"` // of the intervals
}

// SearchQuick and SearchPaper differ in steps, examples and seeds.
var (
	SearchQuick = SearchParams{
		Spaces:  []string{"relu/tanh", "relu/tanh/sin", "relu/identity/0.8*relu+0.2*identity"},
		Teacher: []float64{0.5, 0.3, 0.2}, Noise: []float64{0, 0.1, 0.5}, Starts: []string{"near", "random"},
		Inputs: 5, Width: 8, Student: 8, Spread: 1.5, Train: 200, Valid: 200,
		Update: "eg", Eta: 0.3, LearningRate: 0.01, Steps: 1500, Seeds: 4, Confidence: 0.95,
	}
	SearchPaper = lab.With(SearchQuick, func(p *SearchParams) {
		p.Noise = []float64{0, 0.03, 0.1, 0.3, 1}
		p.Train, p.Valid, p.Steps, p.Seeds = 800, 800, 10000, 20
	})
)

type teaching = searching.Teaching

// Search trains α and W and checks what is found, all searches of a space in one graph. A group is in the part of its
// space.
var Search = lab.Declare(lab.Entry[SearchParams, teaching]{
	Of: paper, Name: "search", Kind: lab.Theorem, Source: "Section 4", Notebook: "search_trained",
	Title: "Trained α and W: what a real search finds of the theorems' assumptions",
	Cost:  catalog.Cost{Quick: "about 5 seconds on two cores", Paper: "about ten minutes on two cores; precomputed"},
	Quick: SearchQuick, Paper: SearchPaper,
	Code:  code.Define("roberts/search", "roberts/internal/searching"),
	Units: func(t teaching) int { return t.Steps },
	// measured, of all searches of a space together; the rest of a step takes as long as two hundred examples
	Seconds: func(t teaching) float64 { return 1.2e-7 * float64(t.Steps) * float64(t.Train+t.Valid+200) },
	Rules:   SearchParams.rules,
	Trials: func(p SearchParams) (gs lab.Groups[teaching]) {
		for _, space := range p.Spaces {
			names := splitSpace(space)
			teacher := slices.Clone(p.Teacher[:len(names)])
			floats.Scale(1/floats.Sum(teacher), teacher)
			for _, start := range p.Starts {
				for _, noise := range p.Noise {
					gs.Add(space, p.Seeds, teaching{
						Activations: names, Teacher: teacher,
						Inputs: p.Inputs, Width: p.Width, Student: p.Student, Spread: p.Spread,
						Train: p.Train, Valid: p.Valid, Noise: noise, Start: start,
						Update: p.Update, Eta: p.Eta, LearningRate: p.LearningRate, Steps: p.Steps,
					})
				}
			}
		}
		return gs
	},
	Bench:  searchBench,
	Draw:   drawSearches,
	Claims: searchClaims,
})

type searches = lab.Result[SearchParams, teaching]

func (p SearchParams) rules(c *study.Checks) {
	err := simplex.CheckUpdate(p.Update)
	c.Expect(err == nil, "Update: %v", err)
	for _, space := range p.Spaces {
		names := splitSpace(space)
		_, err := mixture.ActivationsOf(names)
		c.Expect(err == nil, "space %q: %v", space, err)
		c.Expect(len(names) >= 2 && len(names) <= len(p.Teacher), "space %q must have at least 2 operations and at "+
			"most as many as Teacher has weights, %d, got %d", space, len(p.Teacher), len(names))
	}
}

func spaceOf(t teaching) string { return strings.Join(t.Activations, "/") }

// dependence has the spaces whose operations are linearly dependent functions.
type dependence map[string]bool

// searchBench opens the backend. A reader's activations and update go by what they compute.
func searchBench(_ context.Context, p SearchParams, _ string) (lab.Bench[teaching], error) {
	b, err := backend.Open()
	if err != nil {
		return lab.Bench[teaching]{}, err
	}
	update, err := simplex.UpdateKey(p.Update)
	probes, facts := map[string]string{}, dependence{}
	for _, space := range p.Spaces {
		probe, failed := mixture.Probe(b, splitSpace(space))
		probes[space], facts[space], err = probe, dependent(probe, len(splitSpace(space))), errors.Join(err, failed)
	}
	return lab.Bench[teaching]{
		Key: func(t teaching) any {
			t.Probe, t.Update = probes[spaceOf(t)], update
			return t
		},
		Together: func(t teaching, _ uint64) any { return spaceOf(t) },
		Batch:    func(ctx context.Context, job lab.Job[teaching]) error { return train(ctx, b, job) },
		Label:    func(t teaching) string { return "space " + spaceOf(t) },
		Facts:    facts,
		Study:    study.Study{Device: backend.Opener(1)},
	}, err
}

func train(ctx context.Context, b compute.Backend, job lab.Job[teaching]) error {
	es := mixture.NewEvaluators(b)
	defer es.Close()
	c := &searching.Class{Teaching: job.Of[0]}
	for i, t := range job.Of {
		l, err := t.Draw(es, job.Trials[i].Seed)
		if err != nil {
			return err
		}
		c.Lessons = append(c.Lessons, l)
	}
	w, alpha, err := c.Fit(ctx, b, func() { job.Progress.Step(len(job.Of), spaceOf(job.Of[0])) })
	if err != nil {
		return err
	}
	results, err := c.Results(b, job.Of, w, alpha)
	if err != nil {
		return err
	}
	return job.DoneAll(results)
}

// dependent reports whether h operations are linearly dependent functions, as far as the points of their probe tell:
// then many α give the same mixture.
func dependent(probe string, h int) bool {
	words := strings.Fields(probe)
	values := make([]float64, len(words))
	for i, word := range words {
		values[i], _ = strconv.ParseFloat(word, 64) // mixture.Probe wrote them
	}
	var svd mat.SVD
	if len(values) == 0 || !svd.Factorize(mat.NewDense(h, len(values)/h, values), mat.SVDNone) {
		return false
	}
	sigma := svd.Values(nil)
	return sigma[len(sigma)-1] < 1e-5*sigma[0] // the probe has six digits
}

const (
	reached = 1e-3 // a search reaches the teacher where R is at most this part of the best operation's loss
	far     = 0.05 // from where on α counts as another than α*
)

// searchClaims judge the paper's assumptions on what searches find, and the theorems
// with our gap instead of Assumption 3.
func searchClaims(r *searches) []runs.Claim {
	all, c := searchCounts(r.Groups), r.Confidence
	bounds := all.without("bound_wrong", "bounds", c)
	bounds.Alike = float64(all.operations)
	claims := []runs.Claim{
		all.share("interior", "problems", c).
			Always(r.Claim("[RO005] Assumption 2 (realistic): a search leaves all α_i > 0").From("Assumption 2").Claim),
		all.without("realized", "problems", c).
			Above(r.Claim("[RO006] Assumption 3 (unrealistic): most searches do not find y = f_σα exactly").
				From("Assumption 3").Claim, 0.5),
		all.share("guaranteed_right", "guaranteed", c).
			Always(ours("after a search, Condition 6 and L_j − L_i > 2√(D_ij R) ⇒ α_j < α_i")),
		all.share("sparse_argmax", "sparse", c).
			Always(ours("after a search, 2(1−α_i) max√D_ik + 2√R < min√D_ik ⇒ operation i is the best")),
		bounds.Always(ours("|√L_i − (1−α_i)√A_i| ≤ √R")),
	}
	for _, space := range r.Params.Spaces {
		if len(splitSpace(space)) == 2 {
			claims = append(claims, reachTeacher(r.Part(space)).share("argmax", "problems", c).
				Always(r.Claim("[RO001] %s: a search that reaches the teacher has the better operation at arg max",
					spaceLabel(space)).From("Theorem 1").Claim))
		}
	}
	many := reachTeacher(r.Groups.Where(func(t teaching) bool { return len(t.Activations) > 2 }))
	return append(claims, many.without("argmax", "problems", c).
		Above(r.Claim("[RO016] h > 2: a search that reaches the teacher may have another operation at arg max (share)").
			Claim, 0), dependentClaim(r))
}

// dependentClaim says that α is not identified where many α give the same mixture.
func dependentClaim(r *searches) runs.Claim {
	hull := reachTeacher(r.Groups.Where(func(t teaching) bool { return r.Facts[""].(dependence)[spaceOf(t)] }))
	missed := verdict.Share{Of: hull.sum("problems"), Confidence: r.Confidence}
	for _, record := range hull.records {
		if record.Values["alpha_error"] > far {
			missed.Yes++
		}
	}
	return missed.Above(ours(fmt.Sprintf("linearly dependent operations: a search that reaches the teacher is mostly "+
		"off its α by more than %v", far)), 0.5)
}

func searchCounts(gs lab.Groups[teaching]) counts {
	all := counts{records: gs.Records()}
	for _, g := range gs {
		all.operations = max(all.operations, len(g.Trial.Activations))
	}
	return all
}

// reachTeacher are the counts of searches that reach the teacher.
func reachTeacher(gs lab.Groups[teaching]) counts {
	all := searchCounts(gs)
	all.records = slices.DeleteFunc(all.records, func(r *runs.Record) bool {
		return !(r.Values["mixture"] <= reached*r.Values["best_loss"])
	})
	return all
}

// drawSearches draws the identity's error over what the search has left, α's error
// and whether arg max is right, over the noise.
func drawSearches(r *searches, f *lab.Picture) {
	p := r.Params
	recovery := plots.Panel{Title: "weights found", X: noiseAxis(r), Y: plots.Axis{Label: "$\\max_i |α_i − α_i^*|$"}}
	right := plots.Panel{
		Title: "arg max $α$ is the best", X: noiseAxis(r),
		Y: plots.Axis{Label: "share of searches", Min: -0.02, Max: 1.05},
	}
	for i, space := range p.Spaces {
		var errs [][]float64
		var best []verdict.Share
		for _, noise := range p.Noise {
			gs := r.Part(space).Where(func(t teaching) bool { return t.Noise == noise })
			errs = append(errs, gs.Values("alpha_error"))
			best = append(best, counts{records: gs.Records()}.share("argmax", "problems", r.Confidence))
		}
		label := spaceLabel(space)
		recovery.Series = append(recovery.Series, spaceLook(i).On(r.Curve(label, p.Noise, errs)))
		right.Series = append(right.Series, spaceLook(i).On(plots.Bars(label, p.Noise, best)))
	}
	f.Row(identityPanel(r), recovery, right)
	f.Say("%d searches a point, all settings ours: $α$ by %s on %d validation examples, $W$ by Adam on %d training "+
		"examples, %d steps; teacher $α^*$ ∝ %v, $k = %d$, $d = %d$, student $d = %d$; bars: %v %% CI.",
		p.Seeds*len(p.Starts), strings.Replace(p.Update, "eg", "EG", 1), p.Valid, p.Train, p.Steps,
		strings.NewReplacer("[", "(", "]", ")", " ", ", ").Replace(fmt.Sprint(p.Teacher)), p.Inputs, p.Width, p.Student,
		100*p.Confidence)
}

// markers tell spaces apart. A marker of its own also keeps a cloud of points from being thinned out.
var markers = []plots.Marker{
	plots.Circle, plots.Square, plots.TriangleUp, plots.Diamond, plots.TriangleDown, plots.Pentagon, plots.Hexagon,
}

func spaceLook(i int) plots.Look {
	return plots.Look{Marker: markers[i%len(markers)], Color: plots.ICML.Palette[i%len(plots.ICML.Palette)]}
}

func spaceLabel(space string) string {
	return strings.Join(study.Map(splitSpace(space), shortName), ", ")
}

func noiseAxis(r *searches) plots.Axis {
	most := max(slices.Max(r.Params.Noise), 0.01)
	return plots.Axis{Label: "label noise, sd of the signal", Min: -0.07 * most, Max: 1.07 * most}
}

func identityPanel(r *searches) plots.Panel {
	p := plots.Panel{
		Title:  "the identity after a search",
		X:      plots.Axis{Label: "residual, $\\sqrt{R/L_1}$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "relative error", Scale: plots.Log10},
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	low, high := math.Inf(1), 0.0
	for i, space := range r.Params.Spaces {
		s := spaceLook(i).AsPoints(plots.Series{}) // without a label: the other panels explain the same signs
		for _, record := range r.Part(space).Records() {
			v := record.Values
			x, y := math.Sqrt(v["mixture"]/v["best_loss"]), v["root_error"]
			if v["best_loss"] > 0 && x > 0 && y > 0 {
				s.X, s.Y = append(s.X, x), append(s.Y, y)
				low, high = min(low, x), max(high, x)
			}
		}
		p.Series = append(p.Series, s)
	}
	if low < high {
		ends := []float64{low, high}
		p.Series = append(p.Series, plots.Series{Label: "our bound", Reference: true, X: ends, Y: ends})
	}
	return p
}
