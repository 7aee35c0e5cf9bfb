package khodak2020

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// Corollary31Params are the parameters of the theorems of Section 3 and
// Appendix A, checked where every population risk is known exactly: a
// distribution of finitely many atoms with noisy labels ±1, random Fourier
// features of several bandwidths, predictions clipped to [−1, 1], squared loss
// (B = 4).
type Corollary31Params struct {
	Inputs  int     // dimension of x
	Support int     // atoms of 𝒟
	Dim     int     // random features d
	Gamma   float64 // bandwidth γ of the best configuration c*
	Centers int     // the target is a sum of so many kernel functions
	Top     float64 // max |f*|: how far labels are from certain

	Range  [2]float64 // the other bandwidths lie on a logarithmic grid from … to
	Train  []int      // |T| of Corollary A.1 and A.3
	At     int        // |T| where |V| and |C| are varied
	Valid  []int      // |V|
	Counts []int      // |C|, ascending
	Draws  int        // validation sets of each size
	Delta  float64    // δ

	KernelTrain  []int     // |T| = |V| of Corollary A.3
	KernelFactor []float64 // κ: d = κ·√|T|·log(√|T|/δ)

	JointSize   int       // |T| = |V| of joint ERM against the bilevel choice
	JointDim    int       // its d
	JointCount  int       // its |C|
	JointLambda []float64 // its λ

	Scales  []float64 // ε of the version entropy
	Members int       // of an unregularised version space

	TightCounts []int // |C| of the case where the deviation term is tight, ascending
	TightValid  int   // its |V|

	Lipschitz []float64 // L of Theorem A.1 on a ball of radius ε = 0.1

	Seeds      int
	Confidence float64
	StoredOnly bool // show what the run store has and compute nothing
}

// Corollary31Paper is a wide sweep. The paper states the theorems and measures
// none of them.
var Corollary31Paper = Corollary31Params{
	Inputs: 4, Support: 2048, Dim: 128, Gamma: 0.1, Centers: 4, Top: 0.9,
	Range: [2]float64{1e-3, 10},
	Train: []int{32, 64, 128, 256, 512, 1024, 2048}, At: 256,
	Valid: []int{10, 20, 40, 80, 160, 320, 640, 1280}, Counts: []int{2, 4, 8, 16, 32, 64}, Draws: 200, Delta: 0.1,
	KernelTrain: []int{64, 128, 256, 512, 1024, 2048}, KernelFactor: []float64{0.0625, 0.25, 1, 2},
	JointSize: 200, JointDim: 600, JointCount: 12, JointLambda: []float64{1e-3, 0.05, 0.5, 5, 50},
	Scales: []float64{1e-6, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 3}, Members: 256,
	TightCounts: []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, TightValid: 200,
	Lipschitz: []float64{1, 1.25, 4},
	Seeds:     100, Confidence: 0.95,
}

// Corollary31Quick is the same with fewer and smaller sets.
var Corollary31Quick = func() Corollary31Params {
	p := Corollary31Paper
	p.Support, p.Dim = 1024, 64
	p.Train = []int{32, 64, 128, 256, 512, 1024}
	p.Valid, p.Counts, p.Draws = []int{10, 20, 40, 80, 160, 320, 640}, []int{2, 4, 8, 16}, 50
	p.KernelTrain, p.KernelFactor = []int{64, 128, 256, 512}, []float64{0.0625, 0.25, 1}
	p.JointSize, p.JointDim, p.JointLambda = 100, 300, []float64{1e-3, 0.05, 0.5, 50}
	p.Members, p.Seeds = 64, 16
	p.TightCounts = []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	return p
}()

const (
	corollary31ID    = "khodak2020/corollary31"
	corollary31Title = "Excess risk of feature map selection: version entropy, bilevel and joint ERM"
	epsilonA1        = 0.1 // ε of the ball on which Theorem A.1 is tried
)

func init() {
	catalog.Register(catalog.Entry{
		ID: corollary31ID, Paper: "Khodak+ 2020", Title: corollary31Title, Kind: "theorem",
		Notebook: "notebooks/khodak2020/corollary31_bilevel.ipynb",
		Cost:     catalog.Cost{Quick: "about 20 seconds on two cores; the project ships its trials", Paper: "about 40 minutes on two cores; the project ships its trials"},
	}, Corollary31Quick, Corollary31Paper, Corollary31)
}

// Corollary31Result has the records of every part of the check, one a seed.
type Corollary31Result struct {
	Params Corollary31Params
	Scale  string // "quick", "paper" or empty for own parameters
	parts  map[string][]*runs.Record
	all    []*runs.Record
}

// Records are the keys of the trials.
func (r *Corollary31Result) Records() []string { return keysOf(r.all) }

//go:embed corollary31_compute.go
var corollary31Sources embed.FS

var corollary31Code = sync.OnceValues(func() (string, error) { return runs.CodeVersion(corollary31Sources) })

// trialOf31 is the parameters of one part's trial.
type trialOf31 interface {
	run(seed uint64) (runs.Result, error)
}

// Corollary31 computes what the run store lacks: one trial a part and seed.
// Cancelling ctx ends it after the trials under way, which are stored. It is a
// *catalog.UsageError where a parameter makes no sense.
func Corollary31(ctx context.Context, p Corollary31Params) (*Corollary31Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := corollary31Code()
	if err != nil {
		return nil, err
	}
	parts := p.parts()
	var names []string
	s := sweep{title: corollary31ID, storedOnly: p.StoredOnly}
	for _, part := range parts {
		for _, seed := range runs.Seeds(p.Seeds) {
			s.trials = append(s.trials, runs.Trial{Figure: corollary31ID, Params: part.trial, Seed: seed, Code: code})
			names = append(names, part.name)
		}
	}
	s.run = func(_ context.Context, t runs.Trial, step func(string)) (runs.Result, error) {
		result, err := t.Params.(trialOf31).run(t.Seed)
		step(fmt.Sprintf("seed %d", t.Seed))
		return result, err
	}
	r := &Corollary31Result{Params: p, Scale: runs.Scale(ctx), parts: map[string][]*runs.Record{}}
	if r.all, err = s.compute(ctx); err != nil {
		return nil, fmt.Errorf("corollary 3.1: %w", err)
	}
	for i, record := range r.all {
		if record != nil {
			r.parts[names[i]] = append(r.parts[names[i]], record)
		}
	}
	return r, nil
}

// part is a named kind of trial.
type part struct {
	name  string
	trial trialOf31
}

// selectionName names the trials of a training size and a reading of λ.
func selectionName(reading string, train int) string {
	return fmt.Sprintf("selection/%s/%d", reading, train)
}

func kernelName(train int) string { return fmt.Sprintf("kernel/%d", train) }

// parts lists what is computed, a trial a seed of each.
func (p Corollary31Params) parts() []part {
	w := worldParams{Inputs: p.Inputs, Support: p.Support, Dim: p.Dim, Gamma: p.Gamma, Centers: p.Centers, Top: p.Top}
	selection := func(train int, valid, counts []int, reading string) part {
		return part{selectionName(reading, train), selectionTrial{
			Part: "selection", World: w, Range: p.Range, Train: train, Valid: valid, Counts: counts,
			Draws: p.Draws, Delta: p.Delta, Lambda: reading,
		}}
	}
	// Away from p.At only the largest |V| and |C| are of interest.
	largest, most := p.Valid[len(p.Valid)-1:], p.Counts[len(p.Counts)-1:]
	var parts []part
	for _, reading := range []string{"mean", "sum"} {
		for _, n := range p.Train {
			if n != p.At {
				parts = append(parts, selection(n, largest, most, reading))
			}
		}
		parts = append(parts, selection(p.At, p.Valid, p.Counts, reading))
	}
	parts = append(parts, selection(p.At, p.Valid, p.Counts, "none"))
	for _, n := range p.KernelTrain {
		parts = append(parts, part{kernelName(n), kernelTrial{Part: "kernel", World: w, Range: p.Range, Count: min(8, slices.Max(p.Counts)), Train: n, Factor: p.KernelFactor, Delta: p.Delta}})
	}
	joint := w
	joint.Dim = p.JointDim
	return append(parts,
		part{"joint", jointTrial{"joint", joint, p.Range, p.JointCount, p.JointSize, p.JointLambda}},
		part{"cover", coverTrial{"cover", joint, p.Range, slices.Max(p.Counts), p.JointSize, 0.5, p.Scales, p.Members}},
		part{"uniform", uniformTrial{"uniform", p.TightValid, p.TightCounts, p.Draws, p.Delta}},
		part{"ball", ballTrial{"ball", p.Lipschitz, epsilonA1, 2000, 1_000_000, 20}})
}

// check is an error for the first parameter that makes no sense.
func (p Corollary31Params) check() error {
	c := &checker{}
	for name, v := range map[string]int{"Inputs": p.Inputs, "Support": p.Support, "Dim": p.Dim, "Centers": p.Centers, "At": p.At, "Draws": p.Draws,
		"JointSize": p.JointSize, "JointDim": p.JointDim, "JointCount": p.JointCount, "Members": p.Members, "TightValid": p.TightValid, "Seeds": p.Seeds} {
		c.expect(v >= 1, "%s is %d, want at least 1", name, v)
	}
	for name, list := range map[string][]int{"Train": p.Train, "Valid": p.Valid, "Counts": p.Counts, "KernelTrain": p.KernelTrain, "TightCounts": p.TightCounts} {
		c.expect(len(list) > 0, "%s is empty", name)
		c.expect(slices.IsSorted(list) && (len(list) == 0 || list[0] >= 1) && len(slices.Compact(slices.Clone(list))) == len(list),
			"%s is %v, want different numbers from 1 on, ascending", name, list)
	}
	positive := func(name string, list []float64) {
		c.expect(len(list) > 0, "%s is empty", name)
		for _, v := range list {
			c.expect(v > 0, "%s has %v, want more than 0", name, v)
		}
	}
	positive("KernelFactor", p.KernelFactor)
	positive("Scales", p.Scales)
	positive("Lipschitz", p.Lipschitz)
	positive("Gamma and Range", []float64{p.Gamma, p.Range[0], p.Range[1]})
	c.expect(p.Range[0] < p.Range[1], "Range is %v, want from less to more", p.Range)
	c.expect(len(p.JointLambda) > 0, "JointLambda is empty")
	for _, v := range p.JointLambda {
		c.expect(v >= 0, "JointLambda has %v, want 0 or more", v)
	}
	c.expect(p.Top > 0 && p.Top <= 1, "Top is %v, want 0 < max |f*| ≤ 1, or labels have no probability", p.Top)
	c.expect(p.Delta > 0 && p.Delta < 1, "Delta is %v, want between 0 and 1", p.Delta)
	c.expect(p.Confidence > 0.5 && p.Confidence < 1, "Confidence is %v, want between 0.5 and 1, such as 0.95", p.Confidence)
	if c.err != nil {
		return catalog.Usagef("%v", c.err)
	}
	if _, err := json.Marshal(p); err != nil {
		return catalog.Usagef("parameters: %v", err)
	}
	return nil
}
