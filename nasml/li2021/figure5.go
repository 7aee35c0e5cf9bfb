package li2021

import "github.com/nasml/lab/nasml/lab"

// Figure5Params are the parameters of Figure 5 (XNAS), those of Figure 4.
type Figure5Params = Figure4Params

// Figure5Quick has three precomputed searches by XNAS of 100 epochs on 2,000 images, about ten minutes on two cores.
// They end at 4.7 skip connections of 6 on average.
var Figure5Quick = lab.With(Figure4Quick, func(p *Figure5Params) { p.Rows = []string{"xnas"} })

// Figure5Paper is XNAS with what Appendix C.4 says. It was not run.
var Figure5Paper = Figure5Params{paperSearch, []string{"xnas"}, lookUpAll, "test"}

// Figure5 is Figure4 for XNAS.
var Figure5 = learning{
	name: "figure5", title: "NAS-Bench-201 learning curves of XNAS", source: "Figure 5 and Appendix C.4",
	notebook: "figure5_xnas", label: "the paper's searches", skips: "LI253", drawn: "xnas",
	// The axis of XNAS' curve on CIFAR-10 was fitted to its final accuracy, 54.30, and is not verified otherwise.
	published: func() map[string][][]float64 { return publishedCurves().XNAS },
}.declare(Figure5Quick, Figure5Paper)
