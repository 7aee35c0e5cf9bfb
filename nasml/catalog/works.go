package catalog

// Work is a paper of which there are entries.
type Work struct {
	Title string
	URL   string // empty: no public address is known
}

// Works are the papers by what Entry.Paper calls them. Another module adds those
// of its figures.
var Works = map[string]Work{
	"Khodak+ 2020": {
		"A Simple Setting for Understanding Neural Architecture Search with Weight-Sharing",
		"https://www.automl.org/wp-content/uploads/2020/07/AutoML_2020_paper_46.pdf",
	},
	"Li+ 2021": {
		"Geometry-Aware Gradient Algorithms for Neural Architecture Search",
		"https://arxiv.org/abs/2004.07802",
	},
	"Oymak+ 2021": {
		"Generalization Guarantees for Neural Architecture Search with Train-Validation Split",
		"https://arxiv.org/abs/2104.14132",
	},
	"Roberts+": {"Understanding Neural Architecture Search by its Architecture Parameters", ""},
}
