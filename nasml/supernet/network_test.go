package supernet

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/simplex"
)

func TestNASBench201AsANetwork(t *testing.T) {
	s := newSetup(t, Config{TrackStats: true}, 2)
	require.Equal(t, simplex.Product{{Name: "operations", Rows: 6, Options: 5}}, s.net.Architecture())
	s.run(t, s.theta[0], nil, func(in Input, _ *Node) []*Node {
		none := exceptions.TryCatch[error](func() { s.net.Evaluate(Pass{Images: in.Images, Weights: in.Weights}) })
		require.ErrorContains(t, none, "got 0 matrices of θ")
		return []*Node{ReduceAllSum(in.Images)}
	})
}

func TestCellNetworksRefuseWhatDoesNotFit(t *testing.T) {
	net, err := NewSearch(searches["pc-darts"])
	require.NoError(t, err)
	require.Equal(t, simplex.Product{
		{Name: "normal", Rows: 5, Options: 6}, {Name: "reduce", Rows: 5, Options: 6},
		{Name: "normal edges into 2", Rows: 1, Options: 2}, {Name: "normal edges into 3", Rows: 1, Options: 3},
		{Name: "reduce edges into 2", Rows: 1, Options: 2}, {Name: "reduce edges into 3", Rows: 1, Options: 3},
	}, net.Architecture())
	s := newCellSetup(t, net, 2, false)
	changes := map[string]func(p *Pass){
		"the images must have shape": func(p *Pass) { p.Images = Transpose(p.Images, 1, 3) },
		"got 5 matrices of θ":        func(p *Pass) { p.Theta = p.Theta[1:] },
		"θ, reduce edges into 3 must have": func(p *Pass) {
			p.Theta = append(append([]*Node{}, p.Theta[:5]...), p.Theta[4])
		},
		"6 of chosen operations":              func(p *Pass) { p.Chosen = p.Theta },
		"weights, the network has":            func(p *Pass) { p.Weights = p.Weights[1:] },
		"running statistics, the network has": func(p *Pass) { p.Stats = nil },
		"drop path must have shape":           func(p *Pass) { p.Drop = p.Theta[0] },
	}
	errs := map[string]error{}
	s.run(t, func(p Pass, _ *Node) []*Node {
		for says, change := range changes {
			q := p
			change(&q)
			errs[says] = exceptions.TryCatch[error](func() { net.Evaluate(q) })
		}
		return []*Node{ReduceAllSum(p.Images)}
	})
	require.Len(t, errs, len(changes))
	for says, err := range errs {
		require.ErrorContains(t, err, says)
	}
}
