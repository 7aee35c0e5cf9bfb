package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/supernet"
)

// Space is a search space for a search: a supernet, the meaning of its θ, and its discrete architectures.
type Space interface {
	Network() supernet.Network

	// Entry names a number of θ: "skip_connect on edge 1<-0".
	Entry(block, row, option int) string

	// Discretize reads the architecture off θ, one matrix a block of the network, by the space's own rule. It returns
	// an error if there is none.
	Discretize(theta [][][]float64) (Arch, error)

	// Random draws an architecture, all choices equally likely.
	Random(rng *rand.Rand) (Arch, error)

	// Arch is the architecture of a code, and an error if there is none.
	Arch(code []int) (Arch, error)

	// Size counts the multiply-adds of an image's forward pass and the elements of the maps of all candidate
	// operations, and of the maps between them if nodes, not edges, have operations.
	Size() (products, elements float64)
}

// Arch is a discrete architecture of a space.
type Arch struct {
	// Code is the architecture in a record. NAS-Bench-201: the operation of every edge; cells with two inputs:
	// operation and state of every gene, of the normal cell first; NAS-Bench-1Shot1: the operations of the nodes, then
	// the parents of every node and of the output.
	Code []int
	Text string // as the space prints it

	// Theta makes the supernet this architecture if it takes the place of θ: 1 for what it has, 0 for everything else.
	Theta [][][]float64
}

// Kind is a kind of search spaces: those of one map by name.
type Kind struct {
	Names func() []string
	Key   func(name string) (string, error)            // of a space in the key of a trial
	Open  func(s Settings, classes int) (Space, error) // the supernet of the settings for so many classes
	Reads []string                                     // fields of Settings that others pass over
}

// Kinds are the known kinds of spaces. Settings.Space is the name of a space of any kind.
var Kinds = map[string]Kind{
	"nasbench201": {
		Names: func() []string { return names(supernet.Spaces) }, Key: supernet.SpaceKey, Open: openNASBench201,
		Reads: []string{"Affine", "ConvBias", "TrackStats", "TrackOutside"},
	},
	"cells": {
		Names: func() []string { return names(supernet.CellSpaces) }, Key: supernet.CellSpaceKey, Open: openCells,
		Reads: []string{"Partial", "EdgeWeights", "EdgeUpdate", "EdgeRate", "Stem"},
	},
	"oneshot": {
		Names: func() []string { return names(supernet.OneShots) }, Key: supernet.OneShotKey, Open: openOneShot,
		Reads: []string{"Partial", "EdgeUpdate", "EdgeRate", "AddInput", "Ties"},
	},
}

func names[T any](spaces map[string]T) []string { return slices.Sorted(maps.Keys(spaces)) }

func (s Settings) kind() (name string, kind Kind, err error) {
	var known, found []string
	for _, k := range slices.Sorted(maps.Keys(Kinds)) {
		all := Kinds[k].Names()
		known = append(known, all...)
		if slices.Contains(all, s.Space) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return "", kind, fmt.Errorf("unknown search space %q: take one of %v", s.Space, known)
	case 1:
		return found[0], Kinds[found[0]], nil
	}
	return "", kind, fmt.Errorf("two search spaces are called %q, of the kinds %v: rename one", s.Space, found)
}

// Open is the search space of the settings, for a number of classes. It returns an error if there is no such space, or
// if its supernet cannot be built.
func (s Settings) Open(classes int) (Space, error) {
	_, kind, err := s.kind()
	if err != nil {
		return nil, err
	}
	return kind.Open(s, classes)
}

// checkSpace opens the space. It returns an error if the supernet cannot be built, if the space does not read a
// setting, or if the method is not defined on it.
func (s Settings) checkSpace(m Method, classes int) (Space, error) {
	name, kind, err := s.kind()
	if err != nil {
		return nil, err
	}
	for field, set := range map[string]bool{
		"Affine": s.Affine, "ConvBias": s.ConvBias, "TrackStats": s.TrackStats, "TrackOutside": s.TrackOutside,
		"Partial": s.Partial != 0, "EdgeWeights": s.EdgeWeights, "EdgeUpdate": s.EdgeUpdate != "",
		"EdgeRate": s.EdgeRate != 0, "Stem": s.Stem != "", "AddInput": s.AddInput, "Ties": s.Ties != "",
	} {
		if set && !slices.Contains(kind.Reads, field) {
			return nil, fmt.Errorf("%s is set, which the space %s does not read: leave it unset (spaces of the kind "+
				"%s read %s)", field, s.Space, name, strings.Join(kind.Reads, ", "))
		}
	}
	space, err := kind.Open(s, classes)
	if err != nil {
		return nil, err
	}
	_, free := space.(rowwise)
	if !free && (m.Weights == Controller || m.Final == ByController || m.Final == ByLikelihood) {
		return nil, fmt.Errorf("%s is not defined on the space %s: it draws the operation of one edge after the "+
			"other, and the architectures of this space choose edges, too; take one of NAS-Bench-201's (%s), or "+
			"another method",
			m.Title, s.Space, strings.Join(Kinds["nasbench201"].Names(), ", "))
	}
	return space, nil
}

// left are the operations without those of Settings.Without.
func (s Settings) left(ops []string) ([]string, error) {
	for _, op := range s.Without {
		if !slices.Contains(ops, op) {
			return nil, fmt.Errorf("the space %s has no operation %q to leave out, it has %v", s.Space, op, ops)
		}
	}
	all := slices.DeleteFunc(slices.Clone(ops), func(op string) bool { return slices.Contains(s.Without, op) })
	if len(all) < 2 {
		return nil, fmt.Errorf("the space %s must keep at least 2 operations, got %d without %v", s.Space, len(all),
			s.Without)
	}
	return all, nil
}

type nasbench201 struct{ *supernet.Net }

func openNASBench201(s Settings, classes int) (Space, error) {
	space := supernet.Spaces[s.Space]
	var err error
	if space.Ops, err = s.left(space.Ops); err != nil {
		return nil, err
	}
	net, err := supernet.New(supernet.Config{
		Space: space, Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: classes,
		Affine: s.Affine, ConvBias: s.ConvBias, TrackStats: s.TrackStats, TrackOutside: s.TrackOutside,
	})
	if err != nil {
		return nil, err
	}
	return nasbench201{net}, nil
}

func (n nasbench201) Network() supernet.Network { return n.Net }

func (n nasbench201) Entry(_, row, option int) string {
	return fmt.Sprintf("%s on edge %s", n.Config.Space.Ops[option], n.Config.Space.Edges[row])
}

func (n nasbench201) Discretize(theta [][][]float64) (Arch, error) {
	return n.rowwise(n.Config.Space.Argmax(theta[0])), nil
}

func (n nasbench201) Random(rng *rand.Rand) (Arch, error) {
	choice := make([]int, len(n.Config.Space.Edges))
	for e := range choice {
		choice[e] = rng.IntN(len(n.Config.Space.Ops))
	}
	return n.rowwise(choice), nil
}

func (n nasbench201) Arch(code []int) (Arch, error) {
	edges, ops := len(n.Config.Space.Edges), len(n.Config.Space.Ops)
	if len(code) != edges {
		return Arch{}, fmt.Errorf("found %d operations, expected one for each of %d edges", len(code), edges)
	}
	for e, o := range code {
		if o < 0 || o >= ops {
			return Arch{}, fmt.Errorf("found operation %d on edge %s, expected 0 to %d", o, n.Config.Space.Edges[e],
				ops-1)
		}
	}
	return n.rowwise(code), nil
}

// rowwise is a space whose architectures choose an option in every row of the one block of θ independently. Methods
// that draw row after row are defined on these only.
type rowwise interface {
	rowwise(choice []int) Arch
}

func (n nasbench201) rowwise(choice []int) Arch {
	s := n.Config.Space
	return Arch{Code: choice, Text: s.Arch(choice), Theta: [][][]float64{s.OneHot(choice)}}
}

func (n nasbench201) Size() (products, elements float64) {
	c := n.Config
	side, channels := float64(c.Image), float64(c.Channels)
	for range 3 { // stages; each halves the side and doubles the channels
		maps := float64(c.Cells * len(c.Space.Edges))
		for _, op := range c.Space.Ops {
			elements += maps * side * side * channels
			products += maps * side * side * channels * channels * kernelArea[op]
		}
		side, channels = side/2, channels*2
	}
	return products + float64(n.MultiplyAdds()), elements
}

type cells struct {
	*supernet.CellNet
	space  supernet.CellSpace
	config supernet.SearchConfig
}

func openCells(s Settings, classes int) (Space, error) {
	space := supernet.CellSpaces[s.Space]
	if space.EdgeOps == nil {
		var err error
		if space.Ops, err = s.left(space.Ops); err != nil {
			return nil, err
		}
	} else if len(s.Without) > 0 {
		return nil, fmt.Errorf("the setting Without must be empty on the space %s, whose edges have operations of "+
			"their own, "+
			"got %v", s.Space, s.Without)
	}
	c := supernet.SearchConfig{
		Skeleton: supernet.Skeleton{
			Stem: s.Stem, Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: classes,
		},
		Space: space, Partial: s.Partial, Edges: s.EdgeWeights,
	}
	net, err := supernet.NewSearch(c)
	if err != nil {
		return nil, err
	}
	return cells{net, space, c}, nil
}

func (c cells) Network() supernet.Network { return c.CellNet }

func (c cells) Entry(block, row, option int) string {
	b := c.Architecture()[block]
	if supernet.OnEdges(b) {
		return fmt.Sprintf("edge %d of the %s", option, b.Name)
	}
	t := supernet.CellTypes[block]
	return fmt.Sprintf("%s on edge %s of the %s cell", c.space.Candidates(t, row)[option], c.space.Edges()[row], t)
}

func (c cells) Discretize(theta [][][]float64) (Arch, error) {
	g, err := c.CellNet.Discretize(theta)
	if err != nil {
		return Arch{}, err
	}
	return c.arch(g)
}

func (c cells) Random(rng *rand.Rand) (Arch, error) { return c.arch(c.space.Random(rng)) }

func (c cells) arch(g supernet.Genotype) (a Arch, err error) {
	a.Text = g.String()
	if a.Theta, err = c.Weights01(g); err != nil {
		return a, err
	}
	edges := c.space.Edges()
	for _, t := range supernet.CellTypes {
		for k, gene := range g.Cell(t).Genes {
			e := slices.Index(edges, supernet.Edge{From: gene.From, To: 2 + k/2})
			a.Code = append(a.Code, slices.Index(c.space.Candidates(t, e), gene.Op), gene.From)
		}
	}
	return a, nil
}

func (c cells) Arch(code []int) (Arch, error) {
	genes := 2 * c.space.Nodes // of a cell
	if len(code) != 4*genes {
		return Arch{}, fmt.Errorf("found %d numbers, expected %d: operation and state of %d genes in two cells",
			len(code), 4*genes, genes)
	}
	edges := c.space.Edges()
	read := func(t supernet.CellType, code []int) (cell supernet.Cell, err error) {
		for k := range genes {
			op, from := code[2*k], code[2*k+1]
			e := slices.Index(edges, supernet.Edge{From: from, To: 2 + k/2})
			if e < 0 || op < 0 || op >= c.space.Options() {
				return cell, fmt.Errorf("found operation %d from state %d into node %d, which the space %s has not",
					op, from, 2+k/2, c.space.Name)
			}
			cell.Genes = append(cell.Genes, supernet.Gene{Op: c.space.Candidates(t, e)[op], From: from})
		}
		for n := range c.space.Nodes {
			cell.Concat = append(cell.Concat, 2+n)
		}
		return cell, nil
	}
	normal, err := read(supernet.Normal, code[:2*genes])
	if err != nil {
		return Arch{}, err
	}
	reduce, err := read(supernet.Reduce, code[2*genes:])
	if err != nil {
		return Arch{}, err
	}
	return c.arch(supernet.Genotype{Normal: normal, Reduce: reduce})
}

func (c cells) Size() (products, elements float64) {
	side, width := float64(c.config.Image), float64(c.config.Channels)/float64(max(1, c.config.Partial))
	if strings.HasPrefix(c.config.Stem, "imagenet") {
		side /= 8
	}
	for i := range c.config.Cells {
		if i == c.config.Cells/3 || i == 2*c.config.Cells/3 {
			side, width = side/2, 2*width
		}
		elements += float64(len(c.space.Edges())*c.space.Options()) * side * side * width
	}
	return float64(c.MultiplyAdds()), elements
}

type oneShot struct {
	*supernet.OneShotNet
	config supernet.OneShotConfig
	ties   supernet.Ties
}

func openOneShot(s Settings, classes int) (Space, error) {
	space := supernet.OneShots[s.Space]
	var err error
	if space.Ops, err = s.left(space.Ops); err != nil {
		return nil, err
	}
	ties := supernet.TiesFirst
	if s.Ties != "" {
		ties = supernet.Ties(s.Ties)
	}
	if _, ok := supernet.TieRules[ties]; !ok {
		return nil, fmt.Errorf("the setting Ties must be one of %q, got %q",
			slices.Sorted(maps.Keys(supernet.TieRules)), s.Ties)
	}
	c := supernet.OneShotConfig{
		Skeleton: supernet.Skeleton{Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: classes},
		Space:    space, AddInput: s.AddInput, Partial: s.Partial,
	}
	net, err := supernet.NewOneShot(c)
	if err != nil {
		return nil, err
	}
	return oneShot{net, c, ties}, nil
}

func (o oneShot) Network() supernet.Network { return o.OneShotNet }

func (o oneShot) Entry(block, row, option int) string {
	switch block {
	case 0:
		return fmt.Sprintf("%s on node %d", o.Space.Ops[option], row+1)
	case 1:
		return fmt.Sprintf("node %d as a parent of the output", option)
	default:
		return fmt.Sprintf("node %d among the %s", option, o.Architecture()[block].Name)
	}
}

func (o oneShot) Discretize(theta [][][]float64) (Arch, error) {
	a, err := o.Space.Discretize(theta, o.ties)
	if err != nil {
		return Arch{}, err
	}
	return o.arch(a)
}

func (o oneShot) Random(rng *rand.Rand) (Arch, error) { return o.arch(o.Space.Random(rng)) }

func (o oneShot) arch(a supernet.OneShotArch) (Arch, error) {
	theta, err := o.Space.Weights01(a)
	if err != nil {
		return Arch{}, err
	}
	code := slices.Concat(append([][]int{a.Ops}, a.Parents...)...)
	return Arch{Code: code, Text: o.Space.String(a), Theta: theta}, nil
}

func (o oneShot) Arch(code []int) (Arch, error) {
	want := len(o.Space.Parents) + o.Space.Output
	for _, k := range o.Space.Parents {
		want += k
	}
	if len(code) != want {
		return Arch{}, fmt.Errorf("found %d numbers, expected %d: the operations of the nodes, their parents and "+
			"those of the output", len(code), want)
	}
	a := supernet.OneShotArch{Ops: code[:len(o.Space.Parents)]}
	code = code[len(o.Space.Parents):]
	for _, k := range append(slices.Clone(o.Space.Parents), o.Space.Output) {
		a.Parents = append(a.Parents, code[:k])
		code = code[k:]
	}
	return o.arch(a)
}

func (o oneShot) Size() (products, elements float64) {
	through, whole := o.maps()
	side, width := o.config.Image, o.config.Channels
	for i := range o.config.Cells {
		if i == o.config.Cells/3 || i == 2*o.config.Cells/3 {
			side, width = side/2+1, 2*width
		}
		elements += (through/float64(max(1, o.config.Partial)) + whole) * float64(side*side*width)
	}
	return float64(o.MultiplyAdds()), elements
}

// maps are the maps of a cell: of the candidate operations of its nodes, and, of all channels, the projected input of
// every node, the sums before and after its operations, and what the output weighs and joins.
func (o oneShot) maps() (through, whole float64) {
	n := len(o.Space.Parents)
	joined := n + 1
	if o.config.AddInput { // as wide as all nodes together
		joined = 2 * n
	}
	return float64(n * len(o.Space.Ops)), float64(3*n + 2*joined)
}
