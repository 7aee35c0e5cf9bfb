package supernet

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/simplex"
)

// TestNASBench201AsANetwork: to the bit what Forward gives.
func TestNASBench201AsANetwork(t *testing.T) {
	s := newSetup(t, Config{TrackStats: true}, 2)
	require.Equal(t, simplex.Product{{Name: "operations", Rows: 6, Options: 5}}, s.net.Architecture())
	for _, chosen := range [][][]float64{nil, someChosen(NASBench201)} {
		var aside *Node
		var none error
		out := s.run(t, s.theta[0], chosen, func(in Input, _ *Node) []*Node {
			logits, stats := s.net.Forward(in)
			p := Pass{Images: in.Images, Theta: []*Node{in.Theta}, Weights: in.Weights, Stats: in.Stats, Train: true}
			if chosen != nil {
				p.Chosen = []*Node{in.Chosen}
			}
			o := s.net.Evaluate(p)
			aside, p.Theta = o.Auxiliary, nil
			none = exceptions.TryCatch[error](func() { s.net.Evaluate(p) })
			return []*Node{logits, o.Logits, stats[0], o.Stats[0]}
		})
		require.Nil(t, aside)
		require.ErrorContains(t, none, "got 0 matrices of θ")
		require.Equal(t, out[0], out[1])
		require.Equal(t, out[2], out[3])
	}
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
		"the images: got shape": func(p *Pass) { p.Images = Transpose(p.Images, 1, 3) },
		"got 5 matrices of θ":   func(p *Pass) { p.Theta = p.Theta[1:] },
		"θ, reduce edges into 3: got": func(p *Pass) {
			p.Theta = append(append([]*Node{}, p.Theta[:5]...), p.Theta[4])
		},
		"chosen operations true":              func(p *Pass) { p.Chosen = p.Theta },
		"weights, the network has":            func(p *Pass) { p.Weights = p.Weights[1:] },
		"running statistics, the network has": func(p *Pass) { p.Stats = nil },
		"drop path: got shape":                func(p *Pass) { p.Drop = p.Theta[0] },
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
