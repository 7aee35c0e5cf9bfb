package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/trace"
	"github.com/nasml/lab/nasml/supernet"
)

// DartsParams say what is compared and what is timed.
type DartsParams struct {
	Timing
	Compared []DartsCase
	Timed    []DartsCase
}

// DartsResult is what [Darts] finds in one case.
type DartsResult struct {
	DartsCase
	Agree []Agreement `json:"agree,omitempty"` // of all comparisons, in the first result
	Machine
	Entries []Entry `json:"entries"` // Entries[0] is ours
}

// Agreement is the comparison of losses and gradients with one program's.
type Agreement struct {
	Case    string  `json:"case"`
	Program string  `json:"program"`
	Form    string  `json:"form"`
	NotRun  string  `json:"not_run,omitempty"`
	Numbers int     `json:"numbers"`
	Largest float64 `json:"largest"` // difference, relative to the largest number of an array
}

var dartsPeers = []program{
	{"JAX", "darts_jax.py", []string{"stock", "shifted"}},
	{"PyTorch", "darts_torch.py", []string{"channels-last", "contiguous"}},
}

// Darts compares losses and gradients of small networks with JAX's and PyTorch's, from the same weights and batches,
// and then times larger ones in turn. Each peer is a process of its own. Memory is that of the rounds, without
// compiling. A peer that cannot run, or whose losses differ where it is timed, is reported; other numbers of
// the small networks are an error.
func Darts(ctx context.Context, b compute.Backend, p DartsParams, each func(*DartsResult) error) error {
	var agree []Agreement
	if p.Python == "" {
		p.Compared = nil
	}
	for i, c := range p.Compared {
		found, err := p.agree(ctx, b, c, uint64(i))
		if err != nil {
			return err
		}
		agree = append(agree, found...)
	}
	for cases := slices.Clone(p.Timed); len(cases) > 0; cases = cases[1:] {
		c := cases[0]
		r, err := p.timeCase(ctx, b, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.Agree, agree = agree, nil
		if err := each(r); err != nil {
			return err
		}
		if less, ok := c.smaller(outgrown(r.Entries, func(e Entry) (string, string) { return e.Form, e.NotRun })); ok {
			cases = slices.Insert(cases, 1, less)
		}
	}
	return nil
}

// agree compares a case, with a smaller batch in programs for which it is too large.
func (p DartsParams) agree(ctx context.Context, b compute.Backend, c DartsCase, seed uint64) ([]Agreement, error) {
	var all []Agreement
	for fits := true; fits; {
		p.log("darts: losses and gradients of %s in all programs", c.label())
		found, err := p.compareWith(ctx, b, c, seed, dartsPeers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.label(), err)
		}
		all = append(all, found...)
		c, fits = c.smaller(outgrown(found, func(a Agreement) (string, string) { return a.Form, a.NotRun }))
	}
	return all, nil
}

func outgrown[T any](all []T, of func(T) (form, notRun string)) (forms []string) {
	for _, one := range all {
		if form, notRun := of(one); tooLarge(notRun) {
			forms = append(forms, form)
		}
	}
	return forms
}

// dartsSettings are what the arrays do not say; ours and the peers'.
type dartsSettings struct {
	DartsCase
	Ops             []string           `json:"ops"`
	Parents         []int              `json:"parents,omitempty"` // of nodes, in NAS-Bench-1Shot1
	Genotype        map[string][2]any  `json:"genotype"`          // genes [[op, from]…] and the nodes that are joined
	Weights         []trace.NamedShape `json:"weights"`
	Theta           []trace.NamedShape `json:"theta"`
	LearningRate    float64            `json:"learning_rate"`
	Momentum        float64            `json:"momentum"`
	WeightDecay     float64            `json:"weight_decay"`
	Clip            float64            `json:"clip"`
	ArchRate        float64            `json:"arch_rate"`
	ArchWeightDecay float64            `json:"arch_weight_decay"`
}

// dartsWork is one case with everything it starts from.
type dartsWork struct {
	dartsSettings
	net    *supernet.CellNet
	arrays map[string]*tensors.Tensor // as writeNPY writes them, float32
}

func newDartsWork(c DartsCase, seed uint64) (*dartsWork, error) {
	s := dartsSettings{
		DartsCase: c, Ops: supernet.DARTS.Ops, LearningRate: 0.025, Momentum: 0.9, WeightDecay: 3e-4, Clip: 5,
		ArchRate: 3e-4, ArchWeightDecay: 1e-3,
	}
	if c.Update == "eg" {
		s.ArchRate, s.ArchWeightDecay = 0.1, 0
	}
	w := &dartsWork{dartsSettings: s, arrays: map[string]*tensors.Tensor{}}
	if err := w.build(supernet.Skeleton{Channels: c.Channels, Cells: c.Cells, Image: c.Image}); err != nil {
		return nil, err
	}
	w.draw(rand.New(rand.NewPCG(seed, 1)))
	return w, nil
}

func (w *dartsWork) build(skeleton supernet.Skeleton) (err error) {
	c := w.DartsCase
	switch {
	case c.Space != "":
		space := supernet.OneShots[c.Space]
		w.Ops, w.Parents = space.Ops, space.Parents
		var net *supernet.OneShotNet
		net, err = supernet.NewOneShot(supernet.OneShotConfig{Skeleton: skeleton, Space: space, Partial: c.Partial})
		if err == nil {
			w.net = net.CellNet
		}
	case c.Genotype != "":
		genotype := supernet.Published[c.Genotype].Genotype
		w.Genotype = map[string][2]any{"normal": cellJSON(genotype.Normal), "reduce": cellJSON(genotype.Reduce)}
		w.net, err = supernet.NewDerived(supernet.DerivedConfig{Skeleton: skeleton, Genotype: genotype})
	default:
		w.net, err = supernet.NewSearch(supernet.SearchConfig{
			Skeleton: skeleton, Space: supernet.DARTS, Partial: c.Partial, Edges: c.Partial > 1,
		})
	}
	return err
}

func cellJSON(c supernet.Cell) [2]any {
	genes := make([][2]any, len(c.Genes))
	for i, g := range c.Genes {
		genes[i] = [2]any{g.Op, g.From}
	}
	return [2]any{genes, c.Concat}
}

func (w *dartsWork) draw(rng *rand.Rand) {
	var weights, theta []float32
	for i, t := range w.net.InitWeights(rng) {
		weights = append(weights, tensors.MustCopyFlatData[float32](t)...)
		w.Weights = append(w.Weights, trace.NamedShape{Name: w.net.Weights()[i].Path, Dims: t.Shape().Dimensions})
	}
	for _, b := range w.net.Architecture() {
		w.Theta = append(w.Theta, trace.NamedShape{Name: b.Name, Dims: []int{b.Rows, b.Options}})
		drawn := normals(rng, b.Rows*b.Options)
		if w.Update == "eg" {
			for row := range slices.Chunk(drawn, b.Options) {
				ontoSimplex(row)
			}
		}
		theta = append(theta, drawn...)
	}
	if len(theta) == 0 { // a training has no architecture, and NumPy's files no empty arrays here
		theta = []float32{0}
	}
	flat := func(x []float32, dims ...int) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, dims...) }
	w.arrays["weights"], w.arrays["theta"] = flat(weights, len(weights)), flat(theta, len(theta))
	for _, part := range []string{"train", "valid"} {
		dims := []int{w.Steps, w.Batch, w.Image, w.Image, 3}
		labels := make([]int32, w.Steps*w.Batch)
		for i := range labels {
			labels[i] = rng.Int32N(10)
		}
		w.arrays[part+"_images"] = flat(normals(rng, w.Steps*w.Batch*w.Image*w.Image*3), dims...)
		w.arrays[part+"_labels"] = tensors.FromFlatDataAndDimensions(labels, dims[:2]...)
	}
}

func ontoSimplex(row []float32) {
	sum := 0.0
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x)))
		sum += float64(row[i])
	}
	for i := range row {
		row[i] = float32(float64(row[i]) / sum)
	}
}

func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func (w *dartsWork) write(dir string) error { return write(dir, w.dartsSettings, w.arrays) }

func (p DartsParams) compareWith(
	ctx context.Context, b compute.Backend, c DartsCase, seed uint64, peers []program,
) ([]Agreement, error) {
	work, err := newDartsWork(c, seed)
	if err != nil {
		return nil, err
	}
	folder, err := newTeam(work.write)
	if err != nil {
		return nil, err
	}
	defer folder.stop()
	run, err := newDartsRun(b, work, true)
	if err != nil {
		return nil, err
	}
	defer run.close()
	steps, _, err := run.train(ctx)
	if err != nil {
		return nil, err
	}
	var ours [][]float64
	for _, t := range slices.Concat(steps...) {
		values, err := device.Values(t)
		if err != nil {
			return nil, err
		}
		ours = append(ours, values)
	}
	var out []Agreement
	for _, o := range c.peers(peers) {
		for _, form := range o.forms {
			a := Agreement{Case: c.label(), Program: o.name, Form: form}
			file := filepath.Join(folder.dir, o.name+"-"+form)
			a.NotRun = finish(ctx, p.Python, filepath.Join(folder.dir, o.script), "fill", folder.dir, form, file)
			if err := ctx.Err(); err != nil {
				return out, err
			}
			if a.NotRun == "" {
				if err := a.compare(ours, file); err != nil {
					return out, fmt.Errorf("%s %s: %w", o.name, form, err)
				}
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// doubleTolerance is the largest relative difference in float64: sums of some thousand terms in other orders, through a
// deep network.
const doubleTolerance = 1e-9

// compare compares a peer's numbers with ours.
func (a *Agreement) compare(ours [][]float64, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	theirs := make([]float64, len(data)/8)
	if _, err := binary.Decode(data, binary.LittleEndian, theirs); err != nil {
		return err
	}
	for i, values := range ours {
		if len(theirs) < len(values) {
			return fmt.Errorf("found %d numbers, expected more: array %d is missing", len(data)/8, i)
		}
		largest, apart := 0.0, 0.0
		for k, x := range values {
			largest, apart = max(largest, math.Abs(x)), max(apart, math.Abs(x-theirs[k]))
		}
		if largest < 1e-12 { // a gradient that is 0 but for rounding
			largest = 1
		}
		if a.Largest = max(a.Largest, apart/largest); !(apart/largest <= doubleTolerance) {
			return fmt.Errorf("array %d differs by a part %.1e, at most %v expected: the programs do not compute the "+
				"same, so they are not timed", i, apart/largest, doubleTolerance)
		}
		a.Numbers += len(values)
		theirs = theirs[len(values):]
	}
	if len(theirs) > 0 {
		return fmt.Errorf("found %d numbers more than expected", len(theirs))
	}
	return nil
}

func (p DartsParams) timeCase(ctx context.Context, b compute.Backend, c DartsCase) (*DartsResult, error) {
	work, err := newDartsWork(c, 0)
	if err != nil {
		return nil, err
	}
	p.log("darts: %s, compiling", c)
	own, err := newDartsRun(b, work, false)
	if err != nil {
		return nil, err
	}
	defer own.close()
	peers, err := p.team(ctx, work.write, c.peers(dartsPeers))
	if err != nil {
		return nil, err
	}
	defer peers.stop()
	runners := peers.beside(own.losses)
	if err := p.warmUp(ctx, runners); err != nil {
		return nil, err
	}
	resetPeak()
	if err := p.timeRounds(ctx, runners); err != nil {
		return nil, err
	}
	r := &DartsResult{DartsCase: c, Machine: machineOf(b), Entries: entries(runners, c.Steps)}
	own.foreseen()
	again, err := newDartsRun(b, work, false) // its program is in the cache
	if err != nil {
		return nil, err
	}
	defer again.close()
	first, err := again.losses(ctx)
	r.Entries[0].CachedSeconds = max(0, first.Seconds-r.Entries[0].StepSeconds*float64(c.Steps))
	return r, err
}

// WriteTable writes the result for people.
func (r *DartsResult) WriteTable(w io.Writer) error {
	if len(r.Agree) > 0 {
		rows := []string{"program\tcase\tnumbers\tdiffer by\t"}
		for _, a := range r.Agree {
			found := fmt.Sprintf("%d\t%.1e", a.Numbers, a.Largest)
			if a.NotRun != "" {
				found = "not run: " + a.NotRun + "\t"
			}
			rows = append(rows, fmt.Sprintf("%s %s\t%s\t%s\t", a.Program, a.Form, a.Case, found))
		}
		const head = "Networks of cells: largest relative differences of losses and gradients, float64"
		if err := writeRows(w, head, rows); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w)
	}
	head := r.String()
	if err := writeEntries(w, strings.ToUpper(head[:1])+head[1:]+", "+r.title(), r.Entries); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "From the cache of compiled programs the first call takes %.1f s more than another "+
		"one.\n\n", r.Entries[0].CachedSeconds)
	return err
}
