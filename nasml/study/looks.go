package study

import (
	"fmt"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// Colours of things that have a look in every figure: of Okabe and Ito, as plots' own.
const (
	blue, vermilion, black, pink = "#0072B2", "#D55E00", "#000000", "#CC79A7"
	green, orange, sky           = "#009E73", "#E69F00", "#56B4E9"
)

// looks are those of methods and splits, with their titles. DARTS and what descends from it are blue, GAEA's versions
// vermilion with long dashes, so that they differ in grey too.
var looks = map[plots.Look][]string{
	{Color: blue, Marker: plots.Circle, Line: plots.Solid}: {
		"DARTS (bilevel)", "weight sharing", "Adam on logits (DARTS)", "training", "train",
	},
	{Color: blue, Marker: plots.Square, Line: plots.Solid}: {"PC-DARTS", "projected SGD"},
	{Color: vermilion, Marker: plots.Diamond, Line: plots.LongDash}: {
		"GAEA DARTS (bilevel)", "successive halving", "EG (GAEA)", "EG",
	},
	{Color: vermilion, Marker: plots.TriangleUp, Line: plots.LongDash}: {"GAEA PC-DARTS", "test"},
	{Color: black, Marker: plots.TriangleUp, Line: plots.DashDot}:      {"fast weight sharing", "SGD on logits"},
	{Color: sky, Marker: plots.TriangleDown, Line: plots.Dotted}:       {"DARTS (ERM)"},
	{Color: orange, Marker: plots.Pentagon, Line: plots.DashDot}:       {"GAEA DARTS (ERM)"},
	{Color: orange, Marker: plots.Square, Line: plots.Dashed}:          {"random search"},
	{Color: green, Marker: plots.Hexagon, Line: plots.Dashed}:          {"XNAS"},
	{Color: green, Marker: plots.TriangleDown, Line: plots.Dotted}:     {"Hyperband"},
	{Color: green, Marker: plots.Square, Line: plots.Dashed}:           {"validation"},
}

func init() {
	for look, names := range looks {
		for _, name := range names {
			plots.Named[name] = look
		}
	}
	plots.Title = Title
}

var titles = map[string]string{
	"none": "none", "skip_connect": "skip", "max_pool_3x3": "max pool 3×3", "avg_pool_3x3": "mean pool 3×3",
	"nor_conv_1x1": "conv 1×1", "nor_conv_3x3": "conv 3×3", "sep_conv_3x3": "sep conv 3×3",
	"sep_conv_5x5": "sep conv 5×5", "sep_conv_7x7": "sep conv 7×7", "dil_conv_3x3": "dil conv 3×3",
	"dil_conv_5x5": "dil conv 5×5", "conv_7x1_1x7": "conv 7×1, 1×7",
	"baseline_no_ft": "baseline", "baseline_ft_bn": "baseline, fine-tuned", "avg-3_ft_bn": "avg-3, fine-tuned",
	"pro-rata_ft_bn": "pro rata, fine-tuned", "single-k_ft_bn": "single-$k$, fine-tuned",
	"s-k+p-r_ft_bn": "single-$k$ + pro rata, fine-tuned",
	"darts":         "DARTS (bilevel)", "gaea-darts": "GAEA DARTS (bilevel)",
	"darts/erm": "DARTS (ERM)", "gaea-darts/erm": "GAEA DARTS (ERM)",
	"pc-darts": "PC-DARTS", "gaea-pc-darts": "GAEA PC-DARTS", "PDARTS": "P-DARTS",
	"relu": "ReLU", "leaky relu": "leaky ReLU", "sin4": `$\sin 4x$`, // of activations
	"full_0": "full, part 0", "full_1": "full, part 1", // of NAS-Bench-101
}

// Title is a name of programs in words, as pictures and tables have it: "max_pool_3x3" is "max pool 3×3",
// "gaea-darts/erm@darts" is "GAEA DARTS (ERM), DARTS' space". A cell of NAS-Bench-201, "|avg_pool_3x3~0|+…", is its
// operations, node by node; of a list, "relu, tanh", each has its title. What it does not know stays as it is.
func Title(name string) string {
	if title, ok := titles[name]; ok {
		return title
	}
	if row, space, ok := strings.Cut(name, "@"); ok && titles[row] != "" {
		return titles[row] + ", " + SpaceTitle(space)
	}
	if parts := strings.Split(name, ", "); len(parts) > 1 {
		return strings.Join(Map(parts, Title), ", ")
	}
	if strings.HasPrefix(name, "|") && strings.HasSuffix(name, "|") && strings.Contains(name, "~") {
		return cellTitle(name)
	}
	return name
}

// cellTitle is a cell of NAS-Bench-201: "mean pool 3×3 | skip, conv 1×1 | …".
func cellTitle(name string) string {
	var nodes []string
	for _, node := range strings.Split(name, "+") {
		var ops []string
		for _, edge := range strings.Split(strings.Trim(node, "|"), "|") {
			op, _, _ := strings.Cut(edge, "~")
			ops = append(ops, Title(op))
		}
		nodes = append(nodes, strings.Join(ops, ", "))
	}
	return strings.Join(nodes, " | ")
}

// Cell is a cell of a space as a graph, every edge with its operations as wide as their weights θ.
func Cell(space supernet.Space, theta [][]float64) *plots.Cell {
	c := &plots.Cell{Width: 7, Ops: Map(space.Ops, Op)} // fixed, so that a cell keeps its shape
	for i := range space.Nodes {
		c.Nodes = append(c.Nodes, fmt.Sprint(i))
	}
	for e, edge := range space.Edges {
		c.Edges = append(c.Edges, plots.Edge{From: edge.From, To: edge.To, Weights: theta[e]})
	}
	return c
}

// Op is an operation as cells are drawn with it.
func Op(op string) plots.Op { return plots.Op{Label: op, None: op == "none"} }

// ScaleNote is a caption's sentence on the scale of an entry's parameters, with a space before it, for what the paper
// proves and has no setting for: its largest scale is "large", though a command calls it "paper".
func ScaleNote(params any) string {
	switch catalog.ScaleOf(params) {
	case catalog.Quick:
		return " Quick scale."
	case catalog.Large, catalog.Paper:
		return " Large scale."
	}
	return " Varied parameters."
}

// SettingNote is ScaleNote for an experiment of the paper's, of which fewer runs are no other setting.
func SettingNote(params any) string {
	if catalog.ScaleOf(params, "Seeds") == catalog.Paper {
		return " The paper's setting."
	}
	return strings.TrimSuffix(ScaleNote(params), ".") + ", not the paper's setting."
}

// Counted is a number of things in words, "1 seed" or "3 seeds"; one is what a single one is called.
func Counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// SpaceTitle is a search space in words.
func SpaceTitle(space string) string {
	if title, ok := spaceTitles[space]; ok {
		return title
	}
	return space
}

var spaceTitles = map[string]string{
	"nasbench201": "NAS-Bench-201", "darts": "DARTS' space", "1shot1-s1": "NAS-Bench-1Shot1, space 1",
	"1shot1-s2": "NAS-Bench-1Shot1, space 2", "1shot1-s3": "NAS-Bench-1Shot1, space 3",
	"darts-s1": "RobustDARTS' S1", "darts-s2": "RobustDARTS' S2", "darts-s3": "RobustDARTS' S3",
	"darts-s4": "RobustDARTS' S4",
}
