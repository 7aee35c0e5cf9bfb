package supernet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Gene is an edge of a discrete cell: an operation and the state that it reads.
type Gene struct {
	Op   string
	From int
}

// Cell is a discrete cell: the genes of its nodes one after another, as many for each, and the states whose
// concatenation is the cell's output.
type Cell struct {
	Genes  []Gene
	Concat []int
}

// Genotype is a discrete architecture of a CellSpace.
type Genotype struct{ Normal, Reduce Cell }

// Cell is the cell of a type.
func (g Genotype) Cell(t CellType) Cell {
	if t == Reduce {
		return g.Reduce
	}
	return g.Normal
}

// none is the operation that no genotype chooses.
const none = "none"

// Mixture are operation weights of a search: for each type of cell softmax(α), or θ, [|E|, |O|], and the weights of the
// edges [|E|], nil if all are 1.
type Mixture struct {
	Operations map[CellType][][]float64
	Edges      map[CellType][]float64
}

// Discretize is the genotype of a mixture by the rule of DARTS (quark0/darts@f276dd3, model_search.py:133-152), which
// PC-DARTS and GAEA apply to operation times edge weight: into every node the two edges with the largest weight of an
// operation but none, the stronger first; on each its largest operation but none. Equal weights keep the order of edges
// and of operations. It returns an error for other shapes than the space's, a weight that is not finite, and an edge
// without an operation but none.
func (s CellSpace) Discretize(m Mixture) (Genotype, error) {
	var cells []Cell
	for _, t := range CellTypes {
		genes, err := s.discretize(t, m.Operations[t], m.Edges[t])
		if err != nil {
			return Genotype{}, fmt.Errorf("genotype of the %s cell: %w", t, err)
		}
		concat := make([]int, s.Nodes)
		for i := range concat {
			concat[i] = inputs + i
		}
		cells = append(cells, Cell{genes, concat})
	}
	return Genotype{cells[0], cells[1]}, nil
}

// choice is the best operation of an edge.
type choice struct {
	gene   Gene
	weight float64
}

func (s CellSpace) discretize(t CellType, theta [][]float64, edges []float64) ([]Gene, error) {
	all := s.Edges()
	if len(theta) != len(all) || edges != nil && len(edges) != len(all) {
		return nil, fmt.Errorf("weights of operations on %d edges and %d weights of edges, the space %q has %d edges",
			len(theta), len(edges), s.Name, len(all))
	}
	into := make([][]choice, s.Nodes)
	for e, edge := range all {
		best, err := strongest(s.Candidates(t, e), theta[e])
		if err != nil {
			return nil, fmt.Errorf("edge %s: %w", edge, err)
		}
		best.gene.From = edge.From
		if edges != nil {
			if best.weight *= edges[e]; !finite(edges[e]) {
				return nil, fmt.Errorf("edge %s: its weight is %v", edge, edges[e])
			}
		}
		into[edge.To-inputs] = append(into[edge.To-inputs], best)
	}
	var genes []Gene
	for _, choices := range into {
		slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(b.weight, a.weight) })
		for _, c := range choices[:edgesInto] {
			genes = append(genes, c.gene)
		}
	}
	return genes, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// strongest is the first of the largest weights but that of none.
func strongest(ops []string, weights []float64) (choice, error) {
	if len(weights) != len(ops) {
		return choice{}, fmt.Errorf("%d weights for %d operations", len(weights), len(ops))
	}
	best := choice{weight: math.Inf(-1)}
	for o, w := range weights {
		if !finite(w) {
			return choice{}, fmt.Errorf("the weight of %s is %v", ops[o], w)
		}
		if ops[o] != none && w > best.weight {
			best = choice{Gene{Op: ops[o]}, w}
		}
	}
	if best.gene.Op == "" {
		return choice{}, fmt.Errorf("no operation but %s, of %v", none, ops)
	}
	return best, nil
}

// Check returns an error if the genotype is no network: an unknown operation, a node without its edges, an edge that
// does not come from a state before its node, a concatenation that is empty or has something other than a node, or a
// node twice.
func (g Genotype) Check() error {
	for _, t := range CellTypes {
		if err := g.Cell(t).check(); err != nil {
			return fmt.Errorf("%s cell: %w", t, err)
		}
	}
	return nil
}

func (c Cell) nodes() int { return len(c.Genes) / edgesInto }

func (c Cell) check() error {
	if len(c.Genes) == 0 || len(c.Genes)%edgesInto != 0 {
		return fmt.Errorf("%d edges: every node has %d, so that one is missing or too many", len(c.Genes), edgesInto)
	}
	for i, gene := range c.Genes {
		node := inputs + i/edgesInto
		if err := knownOperation(gene.Op); err != nil {
			return fmt.Errorf("edge %d, into node %d: %w", i, node, err)
		}
		if gene.From < 0 || gene.From >= node {
			return fmt.Errorf("edge %d, %s into node %d, must come from a state before the node, 0 to %d, got %d",
				i, gene.Op, node, node-1, gene.From)
		}
	}
	if len(c.Concat) == 0 {
		return fmt.Errorf("the concatenation must have some of the nodes %d to %d, got none", inputs,
			inputs+c.nodes()-1)
	}
	for i, node := range c.Concat {
		if node < inputs || node >= inputs+c.nodes() || slices.Contains(c.Concat[:i], node) {
			return fmt.Errorf("the concatenation must have each of the nodes %d to %d at most once, got %v",
				inputs, inputs+c.nodes()-1, c.Concat)
		}
	}
	return nil
}

// String prints the genotype as the authors' programs do, in one line:
//
//	Genotype(normal=[('sep_conv_3x3', 0), …], normal_concat=range(2, 6), reduce=[…], reduce_concat=range(2, 6))
func (g Genotype) String() string {
	return fmt.Sprintf("Genotype(normal=%s, normal_concat=%s, reduce=%s, reduce_concat=%s)",
		genesText(g.Normal.Genes), concatText(g.Normal.Concat), genesText(g.Reduce.Genes), concatText(g.Reduce.Concat))
}

func genesText(genes []Gene) string {
	parts := make([]string, len(genes))
	for i, gene := range genes {
		parts[i] = fmt.Sprintf("('%s', %d)", gene.Op, gene.From)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// concatText is a range where the numbers follow one another.
func concatText(concat []int) string {
	parts := make([]string, len(concat))
	follow := len(concat) > 0
	for i, n := range concat {
		parts[i] = strconv.Itoa(n)
		follow = follow && n == concat[0]+i
	}
	if follow {
		return fmt.Sprintf("range(%d, %d)", concat[0], concat[0]+len(concat))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// mostNodes bounds what a range may ask for.
const mostNodes = 1000

// The text of a genotype as JSON: names in quotes, lists for tuples and ranges, in any order and spacing.
var (
	spaceText = regexp.MustCompile(`\s+`)
	nameText  = regexp.MustCompile(`(\w+)=`)
	rangeText = regexp.MustCompile(`range\((\d+),(\d+)\)`)
	asJSON    = strings.NewReplacer(",)", "]", ",]", "]", "(", "[", ")", "]", "'", `"`)
)

// ParseGenotype reads a name of Published or the format of the authors' programs, as [Genotype.String] writes it. It
// returns an error for anything else, and if [Genotype.Check] does.
func ParseGenotype(text string) (Genotype, error) {
	if p, ok := Published[text]; ok {
		return p.Genotype, nil
	}
	inside, opened := strings.CutPrefix(spaceText.ReplaceAllString(text, ""), "Genotype(")
	inside, closed := strings.CutSuffix(inside, ")")
	if !opened || !closed {
		return Genotype{}, fmt.Errorf("genotype %.60q: expected a published name or "+
			"Genotype(normal=[('sep_conv_3x3', 0), …], normal_concat=range(2, 6), reduce=[…], "+
			"reduce_concat=range(2, 6)); published are %s",
			text, strings.Join(slices.Sorted(maps.Keys(Published)), ", "))
	}
	g, err := parseFields(strings.TrimSuffix(inside, ","))
	if err == nil {
		err = g.Check()
	}
	if err != nil {
		return Genotype{}, fmt.Errorf("genotype %.60q: %w", text, err)
	}
	return g, nil
}

// parseFields reads name=value, name=value.
func parseFields(inside string) (Genotype, error) {
	var g Genotype
	inside = rangeText.ReplaceAllStringFunc(inside, func(text string) string {
		found := rangeText.FindStringSubmatch(text)
		from, _ := strconv.Atoi(found[1])
		to, err := strconv.Atoi(found[2])
		if err != nil || to > mostNodes {
			return text // which is no JSON
		}
		return strings.Join(strings.Fields(fmt.Sprint(count(max(from, to))[from:])), ",")
	})
	inside = asJSON.Replace(nameText.ReplaceAllString(inside, `"$1":`))
	fields := map[string]any{
		"normal": &g.Normal.Genes, "normal_concat": &g.Normal.Concat,
		"reduce": &g.Reduce.Genes, "reduce_concat": &g.Reduce.Concat,
	}
	for name := range fields {
		if n := strings.Count(inside, `"`+name+`":`); n != 1 {
			return g, fmt.Errorf("it must have one field %s, got %d", name, n)
		}
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+inside+"}"), &values); err != nil {
		return g, fmt.Errorf("expected lists of ('operation', state) and of node numbers, or a range of these: %w", err)
	}
	for name, value := range values {
		if fields[name] == nil {
			return g, fmt.Errorf("its fields must be %v, got %s", slices.Sorted(maps.Keys(fields)), name)
		}
		if err := json.Unmarshal(value, fields[name]); err != nil {
			return g, fmt.Errorf("%s is %.40s: %w", name, value, err)
		}
	}
	return g, nil
}

// UnmarshalJSON reads ["operation", state].
func (g *Gene) UnmarshalJSON(text []byte) error {
	pair := []any{&g.Op, &g.From}
	if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("found %s, expected ('operation', state)", text)
	}
	return nil
}

// MarshalText writes [Genotype.String].
func (g Genotype) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is [ParseGenotype].
func (g *Genotype) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGenotype(string(text))
	return err
}

// Share is the share of an operation among a cell's edges, such as that of skip_connect in an alarm on collapse (Zela+
// 2020).
func (c Cell) Share(op string) float64 {
	n := 0
	for _, gene := range c.Genes {
		if gene.Op == op {
			n++
		}
	}
	return float64(n) / float64(len(c.Genes))
}

// PublishedGenotype is a genotype that its authors gave away.
type PublishedGenotype struct {
	Genotype Genotype
	Method   string // that found it
	Searched string // data that it was searched on
	Source   string // where it stands
}

// Published are known genotypes of the DARTS space, by the authors' names but for GAEA's, which its paper only shows in
// Figure 3. That of CIFAR-10 is pcdartseedartscifar103103 in the authors' file; of two there, it has the numbers of
// parameters of Tables 4 and 5. That of ImageNet was released by the first author with a later port, as the paper's
// best.
var Published = map[string]PublishedGenotype{
	"DARTS_V1": {
		published("sep3:1 sep3:0 skip:0 sep3:1 skip:0 sep3:1 sep3:0 skip:2",
			"max:0 max:1 skip:2 max:0 max:0 skip:2 skip:2 avg:0"),
		"DARTS (1st order)", "CIFAR-10", "liamcli/gaea_release@36d1299 cnn/search_spaces/darts/genotypes.py, DARTS_V1",
	},
	"DARTS_V2": {
		published("sep3:0 sep3:1 sep3:0 sep3:1 sep3:1 skip:0 skip:0 dil3:2",
			"max:0 max:1 skip:2 max:1 max:0 skip:2 skip:2 max:1"),
		"DARTS (2nd order)", "CIFAR-10", "liamcli/gaea_release@36d1299 cnn/search_spaces/darts/genotypes.py, DARTS_V2",
	},
	"PDARTS": {
		published("skip:0 dil3:1 skip:0 sep3:1 sep3:1 sep3:3 sep3:0 dil5:4",
			"avg:0 sep5:1 sep3:0 dil5:2 max:0 dil3:1 dil3:1 dil5:3"),
		"P-DARTS", "CIFAR-10", "chenxin061/pdarts@b1575e1 genotypes.py, PDARTS",
	},
	"PC_DARTS_cifar": {
		published("sep3:1 skip:0 sep3:0 dil3:1 sep5:0 sep3:1 avg:0 dil3:1",
			"sep5:1 max:0 sep5:1 sep5:2 sep3:0 sep3:3 sep3:1 sep3:2"),
		"PC-DARTS", "CIFAR-10", "yuhuixu1993/PC-DARTS@283b086 genotypes.py, PC_DARTS_cifar",
	},
	"PC_DARTS_image": {
		published("skip:1 sep3:0 sep3:0 skip:1 sep3:1 sep3:3 sep3:1 dil5:4",
			"sep3:0 skip:1 dil5:2 max:1 sep3:2 sep3:1 sep5:0 sep3:3"),
		"PC-DARTS", "ImageNet", "yuhuixu1993/PC-DARTS@283b086 genotypes.py, PC_DARTS_image",
	},
	"GAEA_PC_DARTS_cifar": {
		published("sep3:1 skip:0 sep3:1 skip:2 sep3:1 sep3:2 sep3:0 dil3:4",
			"max:0 max:1 sep5:0 sep5:2 dil3:3 sep5:2 sep5:4 sep3:1"),
		"GAEA PC-DARTS", "CIFAR-10", "liamcli/PC-DARTS@1f5a3e0 genotypes.py, pcdartseedartscifar103103",
	},
	"GAEA_PC_DARTS_image": {
		published("skip:1 skip:0 sep3:2 sep3:1 sep5:2 sep3:0 sep5:3 sep5:2",
			"max:1 sep3:0 sep5:1 dil5:2 sep3:1 sep3:3 sep5:1 max:2"),
		"GAEA PC-DARTS", "ImageNet", "determined-ai/determined@015903f examples/nas/gaea_pytorch/eval/model_def.py",
	},
}

// published expands "operation:state" for the edges of both cells.
func published(normal, reduce string) Genotype {
	return Genotype{shortCell(normal), shortCell(reduce)}
}

func shortCell(text string) Cell {
	names := map[string]string{
		"skip": "skip_connect", "max": "max_pool_3x3", "avg": "avg_pool_3x3", "sep3": "sep_conv_3x3",
		"sep5": "sep_conv_5x5", "dil3": "dil_conv_3x3", "dil5": "dil_conv_5x5",
	}
	cell := Cell{Concat: []int{2, 3, 4, 5}}
	for word := range strings.FieldsSeq(text) {
		op, from, _ := strings.Cut(word, ":")
		cell.Genes = append(cell.Genes, Gene{names[op], int(from[0] - '0')})
	}
	return cell
}
