package li2021

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/li2021/internal/smoothnet"
	"github.com/nasml/lab/nasml/study"
)

// NetParams describe the small supernet of Theorems 1 and 2, a regression f(w, θ).
type NetParams = smoothnet.Params

// smallNet is the supernet of the theorems: two edges of three operations.
var smallNet = NetParams{
	Edges: 2, Inputs: 3, Ops: []string{"tanh", "sin", "bump"}, Examples: 24, Noise: 0.3, Batch: 1,
}

func checkNet(c *study.Checks, p NetParams) {
	c.AtLeast("Edges", p.Edges, 1)
	c.AtLeast("Inputs", p.Inputs, 1)
	c.AtLeast("Examples", p.Examples, 1)
	c.AtLeast("Batch", p.Batch, 1)
	c.Expect(p.Noise >= 0 && !math.IsInf(p.Noise, 0), "Noise must be at least 0, got %v", p.Noise)
	c.Expect(len(p.Ops) >= 2, "Ops must have at least two operations to choose from, got %v", p.Ops)
	c.Expect(slices.ContainsFunc(p.Ops, func(op string) bool { return op != "zero" }),
		"Ops must have an operation other than zero, else f is constant, got %v", p.Ops)
	for _, op := range p.Ops {
		c.OneOf("Ops", op, smoothnet.Operations()...)
	}
}
