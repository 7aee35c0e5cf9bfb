// Package supernet holds the operations of weight-sharing networks and their continuous mixtures, on which searches
// work. Its first space is that of activation functions (Oymak+ 2021, Section 4.2): σ_α = Σᵢ αᵢ σᵢ.
package supernet

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// Activation is an elementwise function σ: R → R as a graph function. Its result has the shape of z.
type Activation func(z *Node) *Node

// Activations are the known activation functions by name. Add a custom one with Activations["mine"] = func(z *Node)
// *Node {…}. They avoid reductions, which XLA's loops cannot contain in go-xla v0.4.
var Activations = map[string]Activation{
	"identity": func(z *Node) *Node { return z },
	"relu":     relu,
	"sigmoid":  Sigmoid,
	"sin":      Sin,
	"softplus": func(z *Node) *Node { return Sub(relu(z), Log(Sigmoid(Abs(z)))) }, // log(1+eᶻ) = max(z,0) − log σ(|z|)
	"square":   func(z *Node) *Node { return MulScalar(Mul(z, z), 0.5) },
	"tanh":     Tanh,
}

// relu is max(z, 0) with derivative 0 at z = 0, as in PyTorch and JAX.
func relu(z *Node) *Node {
	zero := ZerosLike(z)
	return Where(GreaterThan(z, zero), z, zero)
}

// CheckActivation returns an error that lists the known names if name is not one of Activations.
func CheckActivation(name string) error {
	if _, ok := Activations[name]; ok {
		return nil
	}
	return own.Unknown("activation", name, Activations, "supernet.Activations")
}

// MixActivations is the two-point activation mixture of Oymak+ 2021, Section 7a, with one hyperparameter:
//
//	σ_α(z) = (1−α)·σ₀(z) + α·σ₁(z) .
//
// alpha must broadcast to z by its axes of dimension 1; α outside [0, 1] is allowed. It is a graph function: it panics
// for an unknown name, and with both shapes if the ranks differ.
func MixActivations(sigma0, sigma1 string, alpha, z *Node) *Node {
	for _, name := range []string{sigma0, sigma1} {
		if err := CheckActivation(name); err != nil {
			panic(err)
		}
	}
	if alpha.Rank() != z.Rank() {
		panic(fmt.Errorf("MixActivations: alpha has shape %s and z %s: the ranks must agree", alpha.Shape(), z.Shape()))
	}
	a := BroadcastToShape(alpha, z.Shape())
	return Add(Mul(OneMinus(a), Activations[sigma0](z)), Mul(a, Activations[sigma1](z)))
}
