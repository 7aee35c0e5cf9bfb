package oymak2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// Theorem3Params are the parameters of Theorem 3, neural activation search.
// Its Δ is a finite set here: the corners of the simplex, its middle and some
// random points, so that every α of it is trained.
type Theorem3Params struct {
	Activations []string // candidates σ₁…σ_h, see spectral.NamedActivation; smooth ones
	Alphas      int      // random points of Δ beside the h corners and the middle
	Seeds       int      // a seed fixes data, W₀ and Δ
	Seed        int      // the first of them

	C0      float64 // c₀ = ‖v‖²; the theorem: "a proper choice"
	Steps   int     // T gradient steps of size 1/λ_max(K̂_α)
	Epsilon float64 // ε, the training error that is asked for

	Dim     int       // d of the synthetic inputs
	CosPhi  float64   // their margin ⟨x, e₁⟩y; see thm3Cap
	Flip    float64   // share of labels turned over where the theorem is violated on purpose
	Images  data.Name // images of two classes
	Classes [2]int

	Widths     []int // k, with WidthTrain examples of product
	WidthTrain int
	Odd        []string // odd activations, for inputs that violate Assumption 3
	Trains     []int    // n_T, with width Width, of every source
	Width      int

	Validations []int // n_V, drawn from the pool
	Pool        int   // examples that stand for the distribution 𝒟
	Draws       int   // validation sets a size

	Sizes      []int    // h of the search spaces, the first h of Dictionary
	Dictionary []string // of activations
	SizeTrain  int      // n_T there
	SizeAlphas int      // random points of Δ there

	Ranks     []int // eigenvectors whose signs are labels, 1 the principal one
	RankPool  int   // inputs, half of them for training
	RankWorld []string

	Confidence float64
}

// Theorem3Paper is wide and long enough for the regime of the theorem on two
// cores. It prints no experiment of its own, so that all sizes are ours.
var Theorem3Paper = Theorem3Params{
	Activations: []string{"tanh", "sigmoid", "softplus", "sin"},
	Alphas:      5, Seeds: 17,
	C0: 1, Steps: 600, Epsilon: 0.01,
	Dim: 10, CosPhi: 0.8, Flip: 0.1, Images: data.MNIST, Classes: [2]int{0, 1},
	Widths: []int{2, 8, 32, 128, 512, 2048, 8192}, WidthTrain: 40, Odd: []string{"tanh", "sin"},
	Trains: []int{25, 50, 100, 200}, Width: 512,
	Validations: []int{16, 32, 64, 128, 256, 512, 1024, 2048}, Pool: 2000, Draws: 100,
	Sizes: []int{2, 4, 8, 16}, SizeTrain: 60, SizeAlphas: 100,
	Dictionary: []string{
		"tanh", "softplus", "sin", "sigmoid", "sin*2", "softplus*2", "sigmoid*2", "erf",
		"sin*1.5", "softplus*-1", "tanh*0.5", "sin*0.5", "softplus*-2", "sigmoid*0.5", "erf*0.5", "softplus*0.5",
	},
	Ranks: []int{1, 2, 5, 10, 20, 50, 100, 200}, RankPool: 400, RankWorld: []string{thm3Product, thm3Images},
	Confidence: 0.95,
}

// Theorem3Quick has the same arithmetic with narrower networks, fewer α and
// fewer seeds, and asks for a training error of 5 %.
var Theorem3Quick = func() Theorem3Params {
	p := Theorem3Paper
	p.Alphas, p.Seeds, p.Steps, p.Epsilon = 1, 4, 250, 0.05
	p.Widths, p.WidthTrain = []int{2, 16, 64, 256, 1024}, 30
	p.Trains, p.Width = []int{20, 40, 80}, 256
	p.Validations, p.Pool, p.Draws = []int{16, 32, 64, 128, 256, 512}, 1000, 40
	p.Sizes, p.SizeAlphas = []int{2, 4, 8}, 40
	p.Ranks, p.RankPool = []int{1, 2, 5, 10, 20, 50, 100}, 200
	return p
}()

const (
	theorem3ID    = "oymak2021/theorem3"
	theorem3Title = "Neural activation search: all α train to zero error, and validation finds one of the best"
)

func init() {
	catalog.Register(catalog.Entry{
		ID:       theorem3ID,
		Paper:    "Oymak+ 2021",
		Title:    theorem3Title,
		Kind:     "theorem",
		Notebook: "notebooks/oymak2021/theorem3_activation.ipynb",
		Cost:     catalog.Cost{Quick: "about 20 seconds on two cores", Paper: "about an hour on two cores; the project ships its trials"},
	}, Theorem3Quick, Theorem3Paper, Theorem3)
}

// Theorem3Result holds the records of Theorem 3, part by part.
type Theorem3Result struct {
	Params Theorem3Params
	Scale  string // "quick", "paper" or empty for own parameters

	widths    [][]*runs.Record            // [width][seed] gradient descent on product
	paired    []*runs.Record              // [seed] odd activations on pairs
	trains    map[string][][]*runs.Record // [source][n_T][seed] gradient descent
	sizes     [][]*runs.Record            // [h][seed] kernel predictors on product
	ranks     map[string][]*runs.Record   // [source][seed] alignment
	all       []*runs.Record
	synthetic bool // the images are a stand-in
}

// Records are the keys of the trials.
func (r *Theorem3Result) Records() []string { return thm3Keys(r.all) }

//go:embed theorem3_train.go theorem3_data.go theorem3_parts.go
var theorem3Sources embed.FS

var theorem3Code = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(theorem3Sources, spectral.TangentSources)
})

// Theorem3 runs gradient descent on W of the network of Section 4.2 for every
// α of Δ, from the same W₀, and compares it with its kernel, with the bound
//
//	L^{0-1}(f_α̂) ≤ min_α 2B√(yᵀK̄_α⁻¹y/n_T) + C√((Õ(h)+t)/n_V) + ε + δ
//
// and with what the theorem says on training errors and steps. Cancelling ctx
// loses no finished trial. It is an error where a parameter makes no sense (a
// *catalog.UsageError), where images cannot be had and where training diverges.
func Theorem3(ctx context.Context, p Theorem3Params) (*Theorem3Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	images, err := p.images(ctx)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, images)
}

// run is Theorem3 with its images.
func (p Theorem3Params) run(ctx context.Context, images *thm3ImageSet) (*Theorem3Result, error) {
	code, err := theorem3Code()
	if err != nil {
		return nil, err
	}
	plan := p.plan(images)
	var samples []theoremTrial
	for _, step := range plan {
		samples = append(samples, step.samples...)
	}
	records, err := computeTrials(ctx, theorem3ID, code, samples)
	if err != nil {
		return nil, err
	}
	result := &Theorem3Result{
		Params: p, Scale: runs.Scale(ctx), all: records, synthetic: images.synthetic,
		trains: map[string][][]*runs.Record{}, ranks: map[string][]*runs.Record{},
	}
	for _, step := range plan {
		step.file(result, records[:len(step.samples)])
		records = records[len(step.samples):]
	}
	return result, nil
}

// thm3Step is the samples of one point of a figure, a seed each.
type thm3Step struct {
	samples []theoremTrial
	file    func(r *Theorem3Result, records []*runs.Record)
}

func (p Theorem3Params) seeds() []uint64 {
	seeds := runs.Seeds(p.Seeds)
	for i := range seeds {
		seeds[i] += uint64(p.Seed)
	}
	return seeds
}

// sources are those of panel (d).
func (p Theorem3Params) sources() []string {
	return []string{thm3Cap, thm3Images, thm3Product, thm3Flipped}
}

func (p Theorem3Params) world(source string) thm3World {
	w := thm3World{Data: source}
	if source != thm3Images {
		w.Dim = p.Dim
	}
	if source == thm3Cap || source == thm3Flipped {
		w.CosPhi = p.CosPhi
	}
	if source == thm3Flipped {
		w.Flip = p.Flip
	}
	return w
}

// plan lists all that is to be computed, the cheap parts first.
func (p Theorem3Params) plan(images *thm3ImageSet) []thm3Step {
	var plan []thm3Step
	add := func(t thm3Part, label string, file func(*Theorem3Result, []*runs.Record)) {
		step := thm3Step{file: file}
		for _, seed := range p.seeds() {
			s := theoremTrial{params: t, seed: seed, label: label, run: func(ctx context.Context) (runs.Result, error) {
				return t.run(ctx, seed, images)
			}}
			if t.World.Data == thm3Images {
				s.data = images.fingerprint
			}
			step.samples = append(step.samples, s)
		}
		plan = append(plan, step)
	}
	for _, source := range p.RankWorld {
		add(thm3Part{Part: "align", World: p.world(source), Activations: p.Activations, Train: p.RankPool / 2, Pool: p.RankPool, Ranks: p.Ranks},
			"alignment, "+source, func(r *Theorem3Result, records []*runs.Record) { r.ranks[source] = records })
	}
	add(thm3Part{Part: "paired", World: p.world(thm3Paired), Activations: p.Odd, Alphas: p.Alphas, Train: p.WidthTrain, Pool: p.WidthTrain,
		Width: p.Width, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon},
		"pairs x, −x", func(r *Theorem3Result, records []*runs.Record) { r.paired = records })
	for _, h := range p.Sizes {
		add(thm3Part{Part: "kernel", World: p.world(thm3Product), Activations: p.Dictionary[:h], Train: p.SizeTrain, Alphas: p.SizeAlphas,
			Validations: p.Validations, Draws: p.Draws, Pool: p.Pool},
			fmt.Sprintf("h = %d", h), func(r *Theorem3Result, records []*runs.Record) { r.sizes = append(r.sizes, records) })
	}
	for _, n := range p.Trains {
		for _, source := range p.sources() {
			add(p.descent(source, n, p.Width), fmt.Sprintf("%s, n_T = %d", source, n),
				func(r *Theorem3Result, records []*runs.Record) { r.trains[source] = append(r.trains[source], records) })
		}
	}
	for _, k := range p.Widths {
		add(p.descent(thm3Product, p.WidthTrain, k), fmt.Sprintf("k = %d", k),
			func(r *Theorem3Result, records []*runs.Record) { r.widths = append(r.widths, records) })
	}
	return plan
}

func (p Theorem3Params) descent(source string, n, k int) thm3Part {
	return thm3Part{
		Part: "descent", World: p.world(source), Activations: p.Activations, Alphas: p.Alphas, Train: n,
		Width: k, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon,
		Validations: p.Validations, Draws: p.Draws, Pool: p.Pool,
	}
}

// images are the two classes of both splits.
func (p Theorem3Params) images(ctx context.Context) (*thm3ImageSet, error) {
	set := &thm3ImageSet{}
	for _, split := range []data.Split{data.Train, data.Test} {
		im, err := data.Load(ctx, p.Images, split)
		if err != nil {
			return nil, err
		}
		if im, err = im.Classes(uint8(p.Classes[0]), uint8(p.Classes[1])); err != nil {
			return nil, err
		}
		set.fingerprint += im.Fingerprint
		set.synthetic = set.synthetic || im.Synthetic
		part := &thm3Split{im, uint8(p.Classes[0])}
		if split == data.Train {
			set.train = part
		} else {
			set.test = part
		}
	}
	return set, nil
}

// check says what is wrong with the parameters, all of it at once.
func (p Theorem3Params) check() error {
	var c checker
	p.checkSpace(&c)
	p.checkSizes(&c)
	sets := append(data.Names(), data.Synthetic)
	c.expect(slices.Contains(sets, p.Images), "Images is %q, want one of %v", p.Images, sets)
	for _, class := range p.Classes {
		c.expect(class >= 0 && class <= 255, "Classes has %d, want labels from 0 to 255", class)
	}
	c.expect(p.Classes[0] != p.Classes[1], "Classes is %v, want two different labels", p.Classes)
	c.expect(p.Seeds >= 1 && p.Seed >= 0, "Seeds is %d and Seed %d, want at least 1 and 0", p.Seeds, p.Seed)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of theorem 3: %s", strings.Join(c, "; "))
	}
	return nil
}

// checkSpace looks at the activations and how they are trained.
func (p Theorem3Params) checkSpace(c *checker) {
	for field, names := range map[string][]string{"Activations": p.Activations, "Dictionary": p.Dictionary, "Odd": p.Odd} {
		activations, err := spectral.NamedActivations(names...)
		c.expect(err == nil, "%s: %v", field, err)
		c.expect(distinct(names), "%s must not repeat a name: %v", field, names)
		for _, a := range activations {
			c.expect(!math.IsInf(a.Bound(), 1), "%s has %s, whose first two derivatives are not bounded as the theorem wants", field, a.Name)
		}
	}
	c.expect(p.Alphas >= 0 && p.SizeAlphas >= 0, "Alphas is %d and SizeAlphas %d, want 0 or more", p.Alphas, p.SizeAlphas)
	c.expect(p.C0 > 0, "C0 is %v, want more than 0", p.C0)
	c.expect(p.Steps >= 1, "Steps is %d, want at least 1", p.Steps)
	c.expect(p.Epsilon > 0 && p.Epsilon < 1, "Epsilon is %v, want 0 < ε < 1", p.Epsilon)
	c.expect(p.Dim >= 2, "Dim is %d, want at least 2", p.Dim)
	c.expect(p.CosPhi > 0 && p.CosPhi < 1, "CosPhi is %v, want between 0 and 1", p.CosPhi)
	c.expect(p.Flip >= 0 && p.Flip <= 0.5, "Flip is %v, want 0 to 0.5", p.Flip)
}

// rising looks at lists over which a slope is taken.
func (c *checker) rising(lists map[string][]int) {
	for field, sizes := range lists {
		c.expect(len(sizes) >= 2, "%s is %v, want at least two values, a slope needs them", field, sizes)
		c.expect(distinct(sizes) && slices.IsSorted(sizes), "%s is %v, want rising values", field, sizes)
		c.expect(len(sizes) == 0 || slices.Min(sizes) >= 1, "%s is %v, want positive values", field, sizes)
	}
}

// checkSizes looks at what is varied.
func (p Theorem3Params) checkSizes(c *checker) {
	c.rising(map[string][]int{"Widths": p.Widths, "Trains": p.Trains, "Validations": p.Validations, "Sizes": p.Sizes, "Ranks": p.Ranks})
	for _, k := range append(slices.Clone(p.Widths), p.Width) {
		c.expect(k >= 2 && k%2 == 0, "Widths or Width has %d, want even numbers from 2: half of v is positive", k)
	}
	for _, n := range append(slices.Clone(p.Trains), p.WidthTrain, p.SizeTrain) {
		c.expect(n >= 2 && n <= 2000, "Trains, WidthTrain or SizeTrain has %d, want 2 to 2000: all eigenvalues of kernel matrices of this size are taken", n)
	}
	for _, h := range p.Sizes {
		c.expect(h <= len(p.Dictionary), "Sizes has %d, want at most the %d activations of Dictionary", h, len(p.Dictionary))
	}
	for _, j := range p.Ranks {
		c.expect(j <= p.RankPool, "Ranks has %d, want at most RankPool = %d", j, p.RankPool)
	}
	for _, source := range p.RankWorld {
		c.oneOf("RankWorld", source, p.sources()...)
	}
	c.expect(p.RankPool >= 4 && p.RankPool <= 2000 && p.RankPool%2 == 0, "RankPool is %d, want an even number from 4 to 2000", p.RankPool)
	c.expect(p.Pool >= 10 && p.Draws >= 1, "Pool is %d and Draws %d, want at least 10 and 1", p.Pool, p.Draws)
}

// mean of a record's value over seeds.
func thm3Mean(records []*runs.Record, value string) float64 {
	return stat.Mean(thm3Values(records, value), nil)
}

// thm3Values are a value of each record.
func thm3Values(records []*runs.Record, value string) []float64 {
	var values []float64
	for _, r := range records {
		values = append(values, r.Values[value])
	}
	return values
}
