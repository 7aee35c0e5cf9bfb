package oymak2021

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// Assumption3Params are the parameters of Definition 3, Assumption 3 and the
// remarks on deeper networks: what the kernels of activation search are.
type Assumption3Params struct {
	Activations []string // candidates σ₁…σ_h, see spectral.NamedActivation
	Alphas      int      // random points of Δ beside the h corners and the middle
	Seeds       int      // a seed fixes inputs, weights and Δ
	Seed        int      // the first of them

	Dim     int       // d of the inputs on the sphere
	Images  data.Name // unit-norm images of two classes
	Classes [2]int

	Train  int       // n of the width sweep
	Widths []int     // k
	C0s    []float64 // c₀ of the initialization
	Trains []int     // n of λ₀

	DeepActivations []string  // candidates of the deep networks; bounded, so that variances stay small
	Depths          []int     // D
	Gains           []float64 // standard deviation of the deep weights, times √k
	Ridge           float64   // of the deep kernels, as a share of tr(K)/n
	DeepTrain       int       // their n
	DeepDepth       int       // depth of the width sweep of deep networks
	DeepWidths      []int

	Confidence float64
}

// Assumption3Paper takes minutes on two cores. The paper prints no experiment
// here, so that all sizes are ours.
var Assumption3Paper = Assumption3Params{
	Activations: []string{"tanh", "sigmoid", "softplus", "sin"},
	Alphas:      30, Seeds: 20,
	Dim: 10, Images: data.MNIST, Classes: [2]int{0, 1},
	Train: 30, Widths: []int{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
	C0s: []float64{0.01, 0.1, 1, 10, 100}, Trains: []int{5, 10, 20, 40, 80},
	DeepActivations: []string{"tanh", "sigmoid", "sin"},
	Depths:          []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Gains: []float64{1, 2, 3}, Ridge: 0.01,
	DeepTrain: 40, DeepDepth: 3, DeepWidths: []int{64, 128, 256, 512, 1024},
	Confidence: 0.95,
}

// Assumption3Quick has the same arithmetic with fewer α, seeds and neurons.
var Assumption3Quick = func() Assumption3Params {
	p := Assumption3Paper
	p.Alphas, p.Seeds = 8, 8
	p.Train, p.Widths = 20, []int{32, 64, 128, 256, 512, 1024, 2048, 4096}
	p.Trains = []int{5, 10, 20, 40}
	p.Depths, p.DeepTrain = []int{1, 2, 3, 4, 5, 6, 7, 8}, 20
	p.DeepWidths = []int{32, 64, 128, 256}
	return p
}()

const (
	assumption3ID    = "oymak2021/assumption3"
	assumption3Title = "Neural feature maps and kernels of activation search, shallow and deep"
)

func init() {
	catalog.Register(catalog.Entry{
		ID:       assumption3ID,
		Paper:    "Oymak+ 2021",
		Title:    assumption3Title,
		Kind:     "theorem",
		Notebook: "notebooks/oymak2021/assumption3_kernels.ipynb",
		Cost:     catalog.Cost{Quick: "about 5 seconds on two cores", Paper: "about two minutes on two cores; the project ships its trials"},
	}, Assumption3Quick, Assumption3Paper, Assumption3)
}

// Assumption3Result holds the records, part by part.
type Assumption3Result struct {
	Params Assumption3Params
	Scale  string // "quick", "paper" or empty for own parameters

	features  []*runs.Record            // [seed]
	widths    map[string][]*runs.Record // [source][seed]
	lambdas   map[string][]*runs.Record // [source][seed]
	singular  []*runs.Record            // [seed]
	depths    [][]*runs.Record          // [gain][seed]
	deep      []*runs.Record            // [seed]
	all       []*runs.Record
	synthetic bool
}

// Records are the keys of the trials.
func (r *Assumption3Result) Records() []string { return thm3Keys(r.all) }

//go:embed assumption3_parts.go theorem3_data.go
var assumption3Sources embed.FS

var assumption3Code = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(assumption3Sources, spectral.TangentSources)
})

// asm3Sphere are inputs that are uniform on the sphere; their labels, where
// there is need of any, are those of thm3Product.
const asm3Sphere = thm3Product

// Assumption3 computes the kernels of activation search: whether the feature
// maps add up (Definition 3), how fast K̂_α approaches K_α in the width, for all
// α at once, how small its eigenvalues are over Δ and beyond, what happens
// where the assumption is violated, and how the Lipschitz constant of the
// linearized network grows with its depth. Cancelling ctx loses no finished
// trial. It is an error where a parameter makes no sense (a
// *catalog.UsageError) and where images cannot be had.
func Assumption3(ctx context.Context, p Assumption3Params) (*Assumption3Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	images, err := Theorem3Params{Images: p.Images, Classes: p.Classes}.images(ctx)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, images)
}

// run is Assumption3 with its images.
func (p Assumption3Params) run(ctx context.Context, images *thm3ImageSet) (*Assumption3Result, error) {
	code, err := assumption3Code()
	if err != nil {
		return nil, err
	}
	r := &Assumption3Result{
		Params: p, Scale: runs.Scale(ctx), synthetic: images.synthetic,
		widths: map[string][]*runs.Record{}, lambdas: map[string][]*runs.Record{},
	}
	var samples []theoremTrial
	var files []func([]*runs.Record)
	for _, part := range p.parts(r) {
		samples = append(samples, part.part.samples(p, images)...)
		files = append(files, part.file)
	}
	if r.all, err = computeTrials(ctx, assumption3ID, code, samples); err != nil {
		return nil, err
	}
	for i, file := range files {
		file(r.all[i*p.Seeds : (i+1)*p.Seeds])
	}
	return r, nil
}

// asm3Filed is a part with the place of its records in a result.
type asm3Filed struct {
	part asm3Part
	file func([]*runs.Record)
}

func (p Assumption3Params) parts(r *Assumption3Result) []asm3Filed {
	sphere := thm3World{Data: asm3Sphere, Dim: p.Dim}
	all := []asm3Filed{
		{asm3Part{Part: "features", World: sphere, Activations: p.Activations, C0s: p.C0s}, func(f []*runs.Record) { r.features = f }},
		{asm3Part{Part: "singular", World: sphere}, func(f []*runs.Record) { r.singular = f }},
		{
			asm3Part{Part: "deep", World: sphere, Activations: p.DeepActivations, Alphas: p.Alphas, Train: p.DeepTrain, Widths: p.DeepWidths, Depths: []int{p.DeepDepth}, Gain: 1},
			func(f []*runs.Record) { r.deep = f },
		},
	}
	for _, gain := range p.Gains {
		all = append(all, asm3Filed{
			asm3Part{Part: "depth", World: sphere, Activations: p.DeepActivations, Alphas: p.Alphas, Train: p.DeepTrain, Depths: p.Depths, Gain: gain, Ridge: p.Ridge},
			func(f []*runs.Record) { r.depths = append(r.depths, f) },
		})
	}
	for _, world := range []thm3World{sphere, {Data: thm3Images}} {
		all = append(all,
			asm3Filed{
				asm3Part{Part: "width", World: world, Activations: p.Activations, Alphas: p.Alphas, Train: p.Train, Widths: p.Widths},
				func(f []*runs.Record) { r.widths[world.Data] = f },
			},
			asm3Filed{
				asm3Part{Part: "lambda", World: world, Activations: p.Activations, Alphas: p.Alphas, Trains: p.Trains},
				func(f []*runs.Record) { r.lambdas[world.Data] = f },
			})
	}
	return all
}

// check says what is wrong with the parameters, all of it at once.
func (p Assumption3Params) check() error {
	var c checker
	for field, names := range map[string][]string{"Activations": p.Activations, "DeepActivations": p.DeepActivations} {
		_, err := spectral.NamedActivations(names...)
		c.expect(err == nil, "%s: %v", field, err)
		c.expect(distinct(names), "%s must not repeat a name: %v", field, names)
	}
	c.expect(len(p.Activations) <= 8, "Activations has %d names, want at most 8: all signs of α are tried", len(p.Activations))
	c.expect(p.Alphas >= 0, "Alphas is %d, want 0 or more", p.Alphas)
	c.expect(p.Seeds >= 1 && p.Seed >= 0, "Seeds is %d and Seed %d, want at least 1 and 0", p.Seeds, p.Seed)
	c.expect(p.Dim >= 2, "Dim is %d, want at least 2", p.Dim)
	c.rising(map[string][]int{"Widths": p.Widths, "Trains": p.Trains, "DeepWidths": p.DeepWidths, "Depths": p.Depths})
	c.expect(len(p.Depths) < 2 || len(p.Depths) >= 3, "Depths is %v, want at least three values, a growth needs them", p.Depths)
	c.expect(len(p.C0s) >= 2 && distinct(p.C0s), "C0s is %v, want at least two different values", p.C0s)
	for _, positive := range append(slices.Clone(p.C0s), p.Gains...) {
		c.expect(positive > 0, "C0s or Gains has %v, want more than 0", positive)
	}
	c.expect(len(p.Gains) > 0 && distinct(p.Gains), "Gains is %v, want at least one value and none twice", p.Gains)
	c.expect(p.Ridge > 0, "Ridge is %v, want more than 0: it takes the place of Assumption 3 for deep networks", p.Ridge)
	c.expect(p.Train >= 2 && p.DeepTrain >= 2 && max(p.Train, p.DeepTrain, slices.Max(append(p.Trains[:len(p.Trains):len(p.Trains)], 0))) <= 2000 && p.DeepDepth >= 1, "Train is %d, DeepTrain %d and DeepDepth %d, want at least 2, 2 and 1, and no n above 2000: all eigenvalues are taken", p.Train, p.DeepTrain, p.DeepDepth)
	sets := append(data.Names(), data.Synthetic)
	c.expect(slices.Contains(sets, p.Images), "Images is %q, want one of %v", p.Images, sets)
	c.expect(p.Classes[0] != p.Classes[1] && slices.Min(p.Classes[:]) >= 0 && slices.Max(p.Classes[:]) <= 255, "Classes is %v, want two different labels from 0 to 255", p.Classes)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of assumption 3: %s", strings.Join(c, "; "))
	}
	return nil
}

// samples are the seeds of a part.
func (t asm3Part) samples(p Assumption3Params, images *thm3ImageSet) []theoremTrial {
	var samples []theoremTrial
	for _, seed := range runs.Seeds(p.Seeds) {
		seed += uint64(p.Seed)
		s := theoremTrial{params: t, seed: seed, label: fmt.Sprintf("%s, %s", t.Part, thm3Names[t.World.Data]),
			run: func(ctx context.Context) (runs.Result, error) { return t.run(ctx, seed, images) }}
		if t.World.Data == thm3Images {
			s.data = images.fingerprint
		}
		samples = append(samples, s)
	}
	return samples
}
