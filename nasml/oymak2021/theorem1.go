package oymak2021

import (
	"context"
	"embed"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
)

// Theorem1Params are the parameters of Theorem 1. Its parts are
//
//   - "tight": f_α = ⟨α, g⟩ without training, where both suprema are exact;
//   - "ridge": feature-map selection (Definition 2), see thm1World; the risk and
//     its hypergradient have closed forms;
//   - "net": activation search with trained networks, see thm1Net;
//   - "lipschitz": cos(Lαx), h = 1, where only L grows;
//   - "cover": ε-covers of Δ, Definition 1.
type Theorem1Params struct {
	Parts []string

	TightMaps       []int // h of "tight"
	TightValidation []int // n_V of "tight"

	Maps       []int     // h of "ridge"
	Validation []int     // n_V of "ridge" and "net"
	Inputs     int       // d
	Features   int       // p
	Train      int       // n_T; with n_T ≤ d and λ = 0 every α fits the training labels
	Decay      float64   // of the singular values of the maps
	Flips      float64   // share of wrong labels
	Lambdas    []float64 // ridge penalties; 0: the interpolant of minimum norm
	BadTrain   bool      // also train on labels that are coin flips, validate on true ones
	Candidates int       // random α of Δ, the simplex
	Ascent     int       // steps uphill from the worst of them

	Data           data.Name
	Classes        [2]int
	NetTrain       int // n_T of "net"
	Pool           int
	Activations    []string
	NetMaps        []int // h of "net": the first so many activations
	Width, Steps   int
	C0, Rate       float64
	Loss           string // "hinge" (the paper's TVO), "squared" or "error"
	NetCandidates  int
	Lipschitz      []float64 // L of "lipschitz"
	LipschitzValid int       // its n_V

	Seeds      int // training samples, and maps or W₀
	Repeats    int // validation samples of each
	Confidence float64
}

// Theorem1Quick takes half a minute. The paper proves and gives no setting; all
// of it is ours.
var Theorem1Quick = Theorem1Params{
	Parts:     []string{"tight", "ridge", "net", "lipschitz", "cover"},
	TightMaps: []int{2, 8, 32}, TightValidation: []int{8, 32, 128, 256, 512, 1024, 2048},
	Maps: []int{2, 4, 8}, Validation: []int{50, 100, 200, 400, 800, 1600},
	Inputs: 40, Features: 60, Train: 30, Decay: 1, Flips: 0.05, Lambdas: []float64{0, 0.1}, BadTrain: true,
	Candidates: 60, Ascent: 6,
	Data: data.MNIST, Classes: [2]int{3, 5}, NetTrain: 50, Pool: 4000,
	Activations: []string{"relu", "sin4", "sigmoid", "tanh", "identity"}, NetMaps: []int{2, 4},
	Width: 64, Steps: 300, C0: 1, Rate: 0.5, Loss: "hinge", NetCandidates: 16,
	Lipschitz: []float64{3, 10, 30, 100, 300}, LipschitzValid: 200,
	Seeds: 6, Repeats: 20, Confidence: 0.95,
}

// Theorem1Paper has more of everything, and larger h.
var Theorem1Paper = func() Theorem1Params {
	p := Theorem1Quick
	p.TightMaps, p.TightValidation = []int{2, 4, 8, 16, 32, 64}, []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
	p.Maps, p.Validation = []int{2, 4, 8, 16}, []int{50, 100, 200, 400, 800, 1600, 3200, 6400}
	p.Candidates, p.Ascent = 400, 20
	p.NetTrain, p.Pool, p.Width, p.Steps, p.NetCandidates = 100, 10000, 256, 500, 40
	p.NetMaps = []int{2, 3, 5}
	p.Lipschitz = []float64{3, 10, 30, 100, 300, 1000, 3000}
	p.Seeds, p.Repeats = 10, 30
	return p
}()

const (
	theorem1ID    = "oymak2021/theorem1"
	theorem1Title = "Uniform convergence of validation risk and hypergradient over a continuous Δ"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem1ID, Paper: "Oymak+ 2021", Title: theorem1Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/theorem1_uniform_convergence.ipynb",
		Cost:     catalog.Cost{Quick: "half a minute on two cores", Paper: "half an hour to an hour on two cores; the project ships its trials"},
	}, Theorem1Quick, Theorem1Paper, Theorem1)
}

//go:embed theorem1_run.go theorem1_ball.go theorem1_cover.go theorem1_net.go theorem1_world.go
var thm1Sources embed.FS

var thm1Code = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(thm1Sources, features.ExactSources)
})

// thm1Curve is a case with the records of its seeds.
type thm1Curve struct {
	thm1Case
	records []*runs.Record
}

// Theorem1Result holds the curves of Theorem 1.
type Theorem1Result struct {
	Params Theorem1Params
	Scale  string // "quick", "paper" or empty for own parameters
	Curves []thm1Curve
	keys   []string
}

// Records are the keys of the trials behind the curves.
func (r *Theorem1Result) Records() []string { return r.keys }

// Theorem1 measures both sides of Theorem 1, see Theorem1Params. Cancelling ctx
// ends it with the finished trials stored.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the data cannot be had, and where some Φ_α is singular at λ = 0.
func Theorem1(ctx context.Context, p Theorem1Params) (*Theorem1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := thm1Code()
	if err != nil {
		return nil, err
	}
	var images *data.Images
	if slices.Contains(p.Parts, "net") {
		if images, err = thm1Images(ctx, p.Data, p.Classes); err != nil {
			return nil, err
		}
	}
	result := &Theorem1Result{Params: p, Scale: runs.Scale(ctx)}
	var list []theoremTrial
	for _, c := range p.cases() {
		for _, seed := range runs.Seeds(p.Seeds) {
			t := theoremTrial{params: c, seed: seed, run: func(ctx context.Context) (runs.Result, error) { return c.run(ctx, seed, images) }}
			if c.Part == "net" {
				t.data = images.Fingerprint
			}
			list = append(list, t)
		}
		result.Curves = append(result.Curves, thm1Curve{thm1Case: c})
	}
	records, err := computeTrials(ctx, theorem1ID, code, list)
	if err != nil {
		return nil, err
	}
	for i := range result.Curves {
		result.Curves[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	result.keys = thm1Keys(records)
	return result, nil
}

func (p Theorem1Params) check() error {
	var c checker
	c.expect(len(p.Parts) > 0 && distinct(p.Parts), "Parts is %v, want different ones", p.Parts)
	for _, part := range p.Parts {
		c.oneOf("Parts", part, "tight", "ridge", "net", "lipschitz", "cover")
	}
	for name, list := range map[string][]int{"TightMaps": p.TightMaps, "TightValidation": p.TightValidation, "Maps": p.Maps, "Validation": p.Validation, "NetMaps": p.NetMaps} {
		c.expect(len(list) > 0 && distinct(list) && slices.Min(list) >= 1, "%s is %v, want different numbers from 1", name, list)
	}
	p.checkRidge(&c)
	p.checkNet(&c)
	c.expect(len(p.Lipschitz) > 0 && slices.IsSorted(p.Lipschitz) && p.Lipschitz[0] > 0, "Lipschitz is %v, want ascending positive numbers", p.Lipschitz)
	c.expect(p.LipschitzValid >= 1, "LipschitzValid is %d, want at least 1", p.LipschitzValid)
	c.expect(p.Seeds >= 1 && p.Repeats >= 1, "Seeds is %d and Repeats %d, want at least 1", p.Seeds, p.Repeats)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of theorem 1: %s", strings.Join(c, "; "))
	}
	return nil
}

// checkRidge looks at the feature maps.
func (p Theorem1Params) checkRidge(c *checker) {
	c.expect(p.Inputs >= 1 && p.Features >= 1 && p.Train >= 1, "Inputs is %d, Features %d and Train %d, want at least 1", p.Inputs, p.Features, p.Train)
	c.expect(p.Decay >= 0, "Decay is %v, want 0 or more", p.Decay)
	c.expect(p.Flips >= 0 && p.Flips <= 0.5, "Flips is %v, want 0 to 0.5", p.Flips)
	c.expect(len(p.Lambdas) > 0 && distinct(p.Lambdas), "Lambdas is %v, want different penalties", p.Lambdas)
	for _, l := range p.Lambdas {
		c.expect(l >= 0 && !math.IsInf(l, 0), "Lambdas has %v, want 0 or more", l)
		c.expect(l != 0 || p.Train <= min(p.Inputs, p.Features), "Lambdas has 0 with Train %d: the interpolant needs n_T ≤ min(d, p) = %d", p.Train, min(p.Inputs, p.Features))
	}
	c.expect(p.Candidates >= 1 && p.Ascent >= 0 && p.NetCandidates >= 1, "Candidates is %d, NetCandidates %d and Ascent %d, want at least 1, 1 and 0", p.Candidates, p.NetCandidates, p.Ascent)
}

// checkNet looks at the activation search.
func (p Theorem1Params) checkNet(c *checker) {
	if slices.Contains(p.Parts, "net") {
		for _, h := range p.NetMaps {
			c.expect(h <= len(p.Activations), "NetMaps has %d, but Activations has %d", h, len(p.Activations))
		}
		p.net(len(p.Activations)).check(c)
		thm1CheckLoss(c, p.Loss)
		c.expect(slices.Contains(append(data.Names(), data.Synthetic), p.Data), "Data is %q, want one of %v", p.Data, append(data.Names(), data.Synthetic))
	}
}

func (p Theorem1Params) net(h int) thm1Net {
	return thm1Net{Classes: p.Classes, Train: p.NetTrain, Pool: p.Pool,
		Activations: p.Activations[:min(h, len(p.Activations))], Width: p.Width, Steps: p.Steps, C0: p.C0, Rate: p.Rate}
}

// cases lists the curves of all parts.
func (p Theorem1Params) cases() []thm1Case {
	var all []thm1Case
	for _, part := range p.Parts {
		switch part {
		case "tight":
			for _, h := range p.TightMaps {
				all = append(all, thm1Case{Part: part, Maps: h, Validation: p.TightValidation, Repeats: p.Repeats})
			}
		case "ridge":
			for _, h := range p.Maps {
				for i, lambda := range p.Lambdas {
					c := thm1Case{Part: part, Maps: h, Validation: p.Validation, Repeats: p.Repeats, Train: p.Train, Lambda: lambda,
						World:      &thm1World{p.Inputs, p.Features, h, p.Decay, p.Flips},
						Candidates: p.Candidates, Ascent: p.Ascent}
					all = append(all, c)
					if c.Bad = true; i == 0 && p.BadTrain {
						all = append(all, c)
					}
				}
			}
		case "net":
			for _, h := range p.NetMaps {
				net := p.net(h)
				all = append(all, thm1Case{Part: part, Maps: h, Validation: p.Validation, Repeats: p.Repeats, Net: &net, Loss: p.Loss, Candidates: p.NetCandidates})
			}
		case "lipschitz":
			all = append(all, thm1Case{Part: part, Maps: 1, Validation: []int{p.LipschitzValid}, Repeats: p.Repeats, Lipschitz: p.Lipschitz})
		case "cover":
			all = append(all, thm1Case{Part: part})
		}
	}
	return all
}
