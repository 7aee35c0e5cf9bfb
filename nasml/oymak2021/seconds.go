package oymak2021

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/oymak2021/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/landscape"
	"github.com/nasml/lab/nasml/oymak2021/internal/lipschitz"
	"github.com/nasml/lab/nasml/oymak2021/internal/minimizer"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/internal/selection"
	"github.com/nasml/lab/nasml/study"
)

// This file forecasts what trials take a core, in seconds: the operations that count, at what each took in 2026 at the
// quick setting and in parts of the paper's. All trials of an entry at quick scale took within a factor of 1.5 of it.

const nano = 1e-9 // s

func sum(of []int) float64 { return floats.Sum(study.Floats(of)) }

// pairs are those of h activations, each with itself, too: a kernel has an entry for each.
func pairs(h int) float64 { return float64(h*(h+1)) / 2 }

// netSeconds is the training of networks for so many α, with their outputs on the pool.
func netSeconds(alphas int, n activation.Net) float64 {
	return 36 * nano * float64(alphas*n.Width) * (float64(n.Steps*n.Train) + 2*float64(n.Pool))
}

func landscapeSeconds(c landscape.Case) float64 {
	return netSeconds(len(landscape.Grid(len(c.Net.Activations), c.Grid)), c.Net)
}

func convergenceSeconds(c convergence.Case) float64 {
	h, samples := float64(c.Maps), float64(c.Repeats)*sum(c.Validation)
	sets := float64(c.Repeats * len(c.Validation))
	switch c.Part {
	case "tight":
		return nano * (20*samples*h + 9*sets*h*h*h)
	case "ridge":
		d, p, candidates := float64(c.Instance.Inputs), float64(c.Instance.Features), float64(c.Candidates)
		fits := candidates + sets*float64(c.Ascent)
		return nano * (25*samples*d + 1.6*sets*candidates*d*(d+h) + fits*d*p*(3*h+0.6*float64(c.Train)))
	case "net":
		return netSeconds(max(c.Candidates, c.Maps+1), *c.Net)
	case "lipschitz":
		return 125 * nano * slices.Max(c.Lipschitz) * (samples + 3*float64(c.Repeats))
	}
	return 0.5 // covers
}

func lipschitzSeconds(c lipschitz.Case) float64 {
	d, p, h := float64(c.Instance.Inputs), float64(c.Instance.Features), float64(c.Instance.Maps)
	one := float64(c.Pool)*d + 10*d*p*h + 1.5*float64(c.Repeats)*sum(c.Validation)
	return nano * (float64(c.Candidates)*one + 20*float64(c.Pool)*d)
}

func minimizerSeconds(c minimizer.Case) (seconds float64) {
	if c.Kind == "ridge" {
		return 40 * nano * float64(c.Candidates*c.Instance.Inputs*c.Instance.Features)
	}
	times := 1. // how often the eigenvalues of a Hessian are taken, with what is needed for it
	if c.Kind == "log-sum-exp" {
		times = 7
	}
	for _, h := range c.Maps {
		for _, p := range c.Weights {
			seconds += times * nano * float64(c.Cases) * (1e4 + 3*float64((h+p)*(h+p)*(h+p)))
		}
	}
	return seconds
}

func selectionSeconds(c selection.Case) float64 {
	d, p, h := float64(c.Instance.Inputs), float64(c.Instance.Features), float64(c.Instance.Maps)
	candidates, n, pool := float64(c.Candidates), float64(c.Train), float64(c.Pool)
	if c.Part == "prop1" {
		examples := sum(c.Validation) + float64(c.Fixed*len(c.Validation))
		return nano * candidates * float64(c.Repeats) * examples * p * (10 + 1.1*h)
	}
	return nano * (candidates*(pool*d+0.5*n*n*p+8*h*n*p) + 20*pool*d)
}

func kernelSeconds(t kernels.Part) float64 {
	h, n, widths := len(t.Activations), float64(t.Train), sum(t.Widths)
	alphas := float64(1 + h + t.Alphas)
	layer := 48 * nano * alphas * pairs(h) * n // of the kernels of all α, for an input and a layer
	switch t.Part {
	case "width":
		d := float64(t.Source.Dim)
		if t.Source.Data == neural.Digits {
			d = digitPixels
		}
		return nano * widths * (15*d + pairs(h)*n*n)
	case "lambda":
		cubes := 0.
		for _, n := range t.Trains {
			cubes += float64(n * n * n)
		}
		return 260 * nano * float64(int(1)<<h) / 2 * cubes
	case "depth":
		const pool = 40
		return 2 * float64(h) * float64(slices.Max(t.Depths)) * layer * (n + pool)
	case "deep":
		squares, depth := 0., float64(t.Depths[0])
		for _, k := range t.Widths {
			squares += float64(k * k)
		}
		return float64(len(t.Widths))*depth*layer*n + 0.5*nano*alphas*n*squares*(depth-1)
	}
	return 0
}

func activationSearchSeconds(t activationsearch.Part) float64 {
	h, n, pool := len(t.Activations), float64(t.Train), float64(t.Pool)
	descents := float64((h+1+t.Alphas)*t.Width) * (float64(t.Steps)*n + 4*pool)
	return nano * (120*pairs(h)*(n+pool)*n + 12*descents)
}
