package roberts

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/roberts/internal/searching"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// SearchParams are the parameters of real searches: α and W are trained on the
// outputs of a teacher f_σα*(x, W*), and what is found is checked. The paper
// assumes the search to be perfect and has none; all values are ours.
type SearchParams struct {
	Spaces       []string  // "relu/tanh/sin": operations of a space, see [Activation]
	Teacher      []float64 // α*: of a space of h operations the first h, divided by their sum
	Noise        []float64 // of the labels, in standard deviations of the signal; 0: realizable
	Starts       []string  // of W: "near" W* or "random"
	Inputs       int       // k
	Width        int       // d of the teacher
	Student      int       // d of the student; another width has another head v
	Spread       float64   // standard deviation of the teacher's pre-activations
	Train, Valid int       // examples: W is trained on the first, α on the second
	Update       string    // of α, a name of simplex.Updates
	Eta          float64   // step size of α
	LearningRate float64   // of W (Adam)
	Steps        int       // of both, full batches
	Seeds        int
	Confidence   float64 // of the intervals
}

// SearchQuick and SearchPaper differ in steps, examples and seeds.
var (
	SearchQuick = SearchParams{
		Spaces:  []string{"relu/tanh", "relu/tanh/sin", "relu/identity/0.8*relu+0.2*identity"},
		Teacher: []float64{0.5, 0.3, 0.2}, Noise: []float64{0, 0.1, 0.5}, Starts: []string{"near", "random"},
		Inputs: 5, Width: 8, Student: 8, Spread: 1.5, Train: 200, Valid: 200,
		Update: "eg", Eta: 0.3, LearningRate: 0.01, Steps: 1500, Seeds: 4, Confidence: 0.95,
	}
	SearchPaper = func() SearchParams {
		p := SearchQuick
		p.Noise = []float64{0, 0.03, 0.1, 0.3, 1}
		p.Train, p.Valid, p.Steps, p.Seeds = 800, 800, 10000, 20
		return p
	}()
)

const (
	searchID    = "roberts/search"
	searchTitle = "Trained α and W: what a real search finds of the theorems' assumptions"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: searchID, Paper: "Roberts+", Title: searchTitle, Kind: "theorem",
		Notebook: "notebooks/roberts/search_trained.ipynb",
		Cost: catalog.Cost{
			Quick: "about 20 seconds on two cores",
			Paper: "about ten minutes on two cores; the project ships its trials",
		},
	}, SearchQuick, SearchPaper, Search)
}

var searchKind = code.Define("roberts/search", "roberts/internal/searching")

// SearchResult holds a record a search.
type SearchResult struct {
	Params  SearchParams
	Scale   string // "quick", "paper" or empty for own parameters
	records []searched
}

type searched struct {
	searching.Teaching
	space  string
	record *runs.Record
}

// Search trains what the run store lacks of the searches, all of a space in one
// graph. Cancelling ctx ends it after the step under way, with finished spaces
// stored. It is an error where a parameter makes no sense (a
// *catalog.UsageError) and where a search diverges.
func Search(ctx context.Context, p SearchParams) (*SearchResult, error) {
	spaces, err := p.check()
	if err != nil {
		return nil, err
	}
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	r := &SearchResult{Params: p, Scale: runs.Scale(ctx)}
	groups := make([][]study.Case, len(spaces))
	for i, names := range spaces {
		if groups[i], err = p.cases(b, names); err != nil {
			return nil, err
		}
	}
	records, err := p.study(b).Batches(ctx, groups, runs.Options{},
		func(ctx context.Context, group int, job *runs.Job, progress runs.Progress) error {
			err := trainJob(ctx, b, job, func() { progress.Step(len(job.Trials), p.Spaces[group]) })
			if err != nil {
				return fmt.Errorf("space %s: %w", p.Spaces[group], err)
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	for i, group := range groups {
		for j, c := range group {
			r.records = append(r.records, searched{c.Params.(keyed).Teaching, p.Spaces[i], records[i][j]})
		}
	}
	return r, nil
}

func (p SearchParams) study(b compute.Backend) study.Study {
	return study.Study{
		ID: searchID, Code: searchKind, Shipped: shippedRecords,
		Device: func() (string, string, error) { name, device := backend.Describe(b); return name, device, nil },
	}
}

// keyed is a search as its key has it: a reader's update goes by what it
// computes, as activations do by their probe.
type keyed struct{ searching.Teaching }

// MarshalJSON writes the search with the key of its update.
func (k keyed) MarshalJSON() ([]byte, error) {
	t := k.Teaching
	var err error
	if t.Update, err = simplex.UpdateKey(t.Update); err != nil {
		return nil, err
	}
	return json.Marshal(t)
}

// trainJob trains the searches of a job together.
func trainJob(ctx context.Context, b compute.Backend, job *runs.Job, step func()) error {
	es := mixture.NewEvaluators(b)
	defer es.Close()
	c := &searching.Class{Teaching: job.Trials[0].Params.(keyed).Teaching}
	var teachings []searching.Teaching
	for _, t := range job.Trials {
		teaching := t.Params.(keyed).Teaching
		teachings = append(teachings, teaching)
		l, err := teaching.Draw(es, t.Seed)
		if err != nil {
			return err
		}
		c.Lessons = append(c.Lessons, l)
	}
	w, alpha, err := c.Fit(ctx, b, step)
	if err != nil {
		return err
	}
	results, err := c.Results(b, teachings, w, alpha)
	if err != nil {
		return err
	}
	return job.DoneAll(results)
}

// check returns the activations of every space.
func (p SearchParams) check() ([][]string, error) {
	for name, n := range map[string]int{
		"Inputs": p.Inputs, "Width": p.Width, "Student": p.Student, "Train": p.Train, "Valid": p.Valid,
		"Steps": p.Steps, "Seeds": p.Seeds,
		"the number of Starts": len(p.Starts), "the number of Spaces": len(p.Spaces),
		"the number of levels of Noise": len(p.Noise),
	} {
		if n < 1 {
			return nil, catalog.Usagef("%s is %d, want at least 1", name, n)
		}
	}
	for name, x := range map[string]float64{"Spread": p.Spread, "Eta": p.Eta, "LearningRate": p.LearningRate} {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, catalog.Usagef("%s is %v, want a positive number", name, x)
		}
	}
	if !(p.Confidence > 0 && p.Confidence < 1) {
		return nil, catalog.Usagef("Confidence is %v, want a number between 0 and 1", p.Confidence)
	}
	if err := simplex.CheckUpdate(p.Update); err != nil {
		return nil, catalog.Usagef("Update: %v", err)
	}
	if i := slices.IndexFunc(p.Noise, func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) }); i >= 0 {
		return nil, catalog.Usagef("Noise has %v, want numbers of at least 0", p.Noise[i])
	}
	for _, start := range p.Starts {
		if start != "near" && start != "random" {
			return nil, catalog.Usagef("Starts has %q, want near or random", start)
		}
	}
	return p.spaces()
}

func (p SearchParams) spaces() ([][]string, error) {
	var spaces [][]string
	for _, space := range p.Spaces {
		names := splitSpace(space)
		if _, err := mixture.ActivationsOf(names); err != nil {
			return nil, catalog.Usagef("space %q: %v", space, err)
		}
		if len(names) < 2 || len(names) > len(p.Teacher) {
			return nil, catalog.Usagef(
				"space %q has %d operations and Teacher %d weights: want at least 2 operations and a weight for each",
				space,
				len(names),
				len(p.Teacher),
			)
		}
		spaces = append(spaces, names)
	}
	for _, a := range p.Teacher {
		if !(a > 0) || math.IsInf(a, 0) {
			return nil, catalog.Usagef("Teacher is %v, want positive weights", p.Teacher)
		}
	}
	return spaces, nil
}

// cases are the searches of a space.
func (p SearchParams) cases(b compute.Backend, names []string) ([]study.Case, error) {
	t := searching.Teaching{
		Activations: names, Teacher: normalized(p.Teacher[:len(names)]),
		Inputs: p.Inputs, Width: p.Width, Student: p.Student,
		Spread: p.Spread, Train: p.Train, Valid: p.Valid,
		Update: p.Update, Eta: p.Eta, LearningRate: p.LearningRate, Steps: p.Steps,
	}
	var err error
	if t.Probe, err = mixture.Probe(b, names); err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, t.Start = range p.Starts {
		for _, t.Noise = range p.Noise {
			cases = append(
				cases,
				study.Each(p.Seeds, func(uint64) study.Case { return study.Case{Params: keyed{t}, Units: p.Steps} })...)
		}
	}
	return cases, nil
}

// Records are the keys of the searches.
func (r *SearchResult) Records() []string {
	var keys []string
	for _, s := range r.records {
		keys = append(keys, s.record.Key)
	}
	return keys
}

// where are the searches that a condition picks.
func (r *SearchResult) where(pick func(searched) bool) group {
	var g group
	for _, s := range r.records {
		if pick(s) {
			g.records = append(g.records, s.record)
			g.Operations = max(g.Operations, len(s.Activations))
		}
	}
	return g
}

// Figure draws the identity's error over what the search has left, α's error and
// whether arg max is right, over the noise.
func (r *SearchResult) Figure() plots.Figure {
	p := r.Params
	return plots.Figure{
		Name: "roberts-search", Style: plots.ICML.Text(),
		Caption: fmt.Sprintf(
			"%d searches a point: $α$ by %s on %d validation examples, $W$ by Adam on %d training examples, %d "+
				"steps; teacher $α^*$ ∝ %v, $k = %d$, $d = %d$, student $d = %d$; %v %% intervals. The paper has no "+
				"search; all settings are ours.",
			p.Seeds*len(
				p.Starts,
			),
			strings.Replace(p.Update, "eg", "EG", 1),
			p.Valid,
			p.Train,
			p.Steps,
			strings.NewReplacer("[", "(", "]", ")", " ", ", ").Replace(fmt.Sprint(p.Teacher)),
			p.Inputs,
			p.Width,
			p.Student,
			100*p.Confidence,
		) + scaleNote(p),
		Panels: [][]plots.Panel{{r.identityPanel(), r.recoveryPanel(), r.argmaxPanel()}},
		Meta:   study.Meta(searchTitle, r.Scale, p),
	}
}

// markers tell spaces apart. A marker of its own also keeps a cloud of points
// from being thinned out.
var markers = []plots.Marker{
	plots.Circle,
	plots.Square,
	plots.TriangleUp,
	plots.Diamond,
	plots.TriangleDown,
	plots.Pentagon,
	plots.Hexagon,
}

// spaceLabel is a space in a legend.
func spaceLabel(space string) string {
	text := ""
	for i, name := range splitSpace(space) {
		if i > 0 {
			text += ", "
		}
		text += shortName(name)
	}
	return text
}

func (r *SearchResult) identityPanel() plots.Panel {
	p := plots.Panel{
		Title:  "the identity after a search",
		X:      plots.Axis{Label: "residual, $\\sqrt{R/L_1}$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "relative error", Scale: plots.Log10},
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	low, high := math.Inf(1), 0.0
	for i, space := range r.Params.Spaces {
		// Without a label: the other panels explain the same signs.
		s := plots.Series{
			Line:   plots.NoLine,
			Marker: markers[i%len(markers)],
			Color:  plots.ICML.Palette[i%len(plots.ICML.Palette)],
		}
		for _, q := range r.records {
			v := q.record.Values
			x, y := math.Sqrt(v["mixture"]/v["best_loss"]), v["root_error"]
			if q.space == space && v["best_loss"] > 0 && x > 0 && y > 0 {
				s.X, s.Y = append(s.X, x), append(s.Y, y)
				low, high = min(low, x), max(high, x)
			}
		}
		p.Series = append(p.Series, s)
	}
	if low < high {
		p.Series = append(
			p.Series,
			plots.Series{Label: "our bound", Reference: true, X: []float64{low, high}, Y: []float64{low, high}},
		)
	}
	return p
}

// over draws a curve a space over the noise.
func (r *SearchResult) over(point func(g group) plottable) []plots.Series {
	var all []plots.Series
	for i, space := range r.Params.Spaces {
		var x []float64
		var y []plottable
		for _, noise := range r.Params.Noise {
			x = append(x, noise)
			y = append(y, point(r.where(func(s searched) bool { return s.space == space && s.Noise == noise })))
		}
		s := plots.Bars(spaceLabel(space), x, y)
		s.Marker, s.Color = markers[i%len(markers)], plots.ICML.Palette[i%len(plots.ICML.Palette)]
		all = append(all, s)
	}
	return all
}

type plottable interface{ Bounds() (y, lo, hi float64) }

func (r *SearchResult) noiseAxis() plots.Axis {
	most := max(slices.Max(r.Params.Noise), 0.01)
	return plots.Axis{Label: "label noise, sd of the signal", Min: -0.07 * most, Max: 1.07 * most}
}

func (r *SearchResult) recoveryPanel() plots.Panel {
	return plots.Panel{
		Title: "weights found", X: r.noiseAxis(), Y: plots.Axis{Label: "$\\max_i |α_i − α_i^*|$"},
		Series: r.over(func(g group) plottable {
			var errs []float64
			for _, record := range g.records {
				errs = append(errs, record.Values["alpha_error"])
			}
			s, err := runs.Summarize(errs, r.Params.Confidence)
			if err != nil {
				panic(err) // records hold finite numbers, and there is one
			}
			return s
		}),
	}
}

func (r *SearchResult) argmaxPanel() plots.Panel {
	return plots.Panel{
		Title: "arg max $α$ is the best", X: r.noiseAxis(),
		Y:      plots.Axis{Label: "share of searches", Min: -0.02, Max: 1.05},
		Series: r.over(func(g group) plottable { return g.share("argmax", "problems", r.Params.Confidence) }),
	}
}

// reached is where a search counts as having reached the teacher: R is at most
// this part of the best operation's loss.
const reached = 1e-3

func (s searched) reached() bool {
	return s.record.Values["mixture"] <= reached*s.record.Values["best_loss"]
}

// Check judges the paper's assumptions on what searches find, and the theorems
// with our gap in place of Assumption 3.
func (r *SearchResult) Check() []runs.Claim {
	c := r.Params.Confidence
	all := r.where(func(searched) bool { return true })
	total := all.sum("problems")
	claims := []runs.Claim{
		all.share("interior", "problems", c).
			Always(runs.NewClaim("[RO005] Assumption 2 (realistic): a search leaves all α_i > 0",
				"Roberts+, Assumption 2")),
		verdict.Share{
			Yes:        total - all.sum("realized"),
			Of:         total,
			Confidence: c,
		}.Above(runs.NewClaim("[RO006] Assumption 3 (unrealistic): most searches do not find y = f_σα exactly",
			"Roberts+, Assumption 3"), 0.5),
		all.share("guaranteed_right", "guaranteed", c).
			Always(runs.NewClaim("own: after a search, Condition 6 and L_j − L_i > 2√(D_ij R) ⇒ α_j < α_i", own)),
		all.share("sparse_argmax", "sparse", c).
			Always(runs.NewClaim("own: after a search, 2(1−α_i) max√D_ik + 2√R < min√D_ik ⇒ operation i is the best",
				own)),
		verdict.Share{
			Yes:        all.sum("bounds") - all.sum("bound_wrong"),
			Of:         all.sum("bounds"),
			Confidence: c,
			Alike:      float64(all.Operations),
		}.
			Always(
				runs.NewClaim("own: |√L_i − (1−α_i)√A_i| ≤ √R", own),
			),
	}
	return append(claims, r.checkReached()...)
}

// checkReached judges searches that reach the teacher.
func (r *SearchResult) checkReached() []runs.Claim {
	c := r.Params.Confidence
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		if len(splitSpace(space)) == 2 {
			g := r.where(func(s searched) bool { return s.space == space && s.reached() })
			claims = append(
				claims,
				g.share("argmax", "problems", c).
					Always(runs.NewClaim("[RO001] "+spaceLabel(space)+": a search that reaches the teacher has the "+
						"better operation at arg max", "Roberts+, Theorem 1")),
			)
		}
	}
	many := r.where(func(s searched) bool { return len(s.Activations) > 2 && s.reached() })
	claims = append(
		claims,
		verdict.Share{Yes: many.sum("problems") - many.sum("argmax"), Of: many.sum("problems"), Confidence: c}.
			Above(
				runs.NewClaim(
					"[RO016] h > 2: a search that reaches the teacher may have another operation at arg max (share)",
					"Roberts+, Section 4",
				),
				0,
			),
	)
	hull := r.where(func(s searched) bool { return s.dependent() && s.reached() })
	missed := verdict.Share{Yes: 0, Of: hull.sum("problems"), Confidence: c}
	for _, record := range hull.records {
		if record.Values["alpha_error"] > far {
			missed.Yes++
		}
	}
	return append(
		claims,
		missed.Above(
			runs.NewClaim(
				fmt.Sprintf(
					"own: linearly dependent operations: a search that reaches the teacher is mostly off its α by "+
						"more than %v",
					far,
				),
				own,
			),
			0.5,
		),
	)
}

// far is from where on α counts as another than α*.
const far = 0.05

// dependent says whether the operations are linearly dependent functions, as far
// as the points of the probe tell: then many α give the same mixture.
func (s searched) dependent() bool {
	words := strings.Fields(s.Probe)
	values := make([]float64, len(words))
	for i, word := range words {
		values[i], _ = strconv.ParseFloat(word, 64) // probe wrote them
	}
	h := len(s.Activations)
	var svd mat.SVD
	if len(values) == 0 || !svd.Factorize(mat.NewDense(h, len(values)/h, values), mat.SVDNone) {
		return false
	}
	sigma := svd.Values(nil)
	return sigma[len(sigma)-1] < 1e-5*sigma[0] // the probe has six digits
}
