package li2021

import (
	"math"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

func table2Settings() []runs.Claim {
	const c3, section44 = "Li+ 2021, Appendix C.3", "Li+ 2021, Section 4.4"
	of := func(w row) search.Settings {
		s, err := Table2Paper.settings(w)
		if err != nil {
			panic(err) // of a preset that a test runs
		}
		return s
	}
	gaea, gdas, published := of("gaea-darts"), of("gaea-gdas"), of("gdas")
	claims := []runs.Claim{
		verdict.Setting("[LI057] NAS-Bench-201: architectures", section44, data.Archs201, 15625),
		verdict.Setting("[LI239] GAEA DARTS: step size of the architecture", "Li+ 2021, Section 4", gaea.ArchRate, 0.1),
		verdict.Setting("[LI239] GAEA DARTS: weight decay of the architecture", "Li+ 2021, Section 4",
			gaea.ArchWeightDecay, 0.),
		verdict.Setting("[LI243] GAEA GDAS: step size of the architecture", c3, gdas.ArchRate, 0.1),
		verdict.Setting("[LI244] GAEA GDAS: epochs", c3, gdas.Epochs, 150),
		verdict.Setting("[LI244] GDAS: epochs", c3, published.Epochs, 250),
		verdict.Setting("[LI246] GAEA DARTS: step size of the architecture", c3, gaea.ArchRate, 0.1),
		verdict.Setting("[LI246] GAEA DARTS: epochs", c3, gaea.Epochs, 25),
	}
	for _, w := range []row{"gaea-darts", "gaea-darts/erm", "darts", "darts/erm"} {
		claims = append(claims, verdict.Setting("[LI247] "+w.title()+": operations of an edge", c3,
			len(supernet.Spaces[of(w).Space].Without(of(w).Without...).Ops), 4))
	}
	claims = append(claims, weightSettings(gaea, c3)...)
	return append(claims,
		verdict.Setting("[LI009] RSPS holds an architecture that it moves", "Li+ 2021, Section 2.2",
			search.Methods["rsps"].Hold != search.Nothing, false))
}

func weightSettings(s search.Settings, source string) []runs.Claim {
	return []runs.Claim{
		verdict.Setting("[LI248] batch", source, s.Batch, 64),
		verdict.Setting("[LI248] learning rate at the start", source, s.LearningRate, 0.025),
		verdict.Setting("[LI248] learning rate at the end of the cosine", source, s.LearningRateMin, 0.001),
		verdict.Setting("[LI248] momentum", source, s.Momentum, 0.9),
		verdict.Setting("[LI248] weight decay", source, s.WeightDecay, 3e-4),
		verdict.Setting("[LI248] initial channels", source, s.Channels, 16),
		verdict.Setting("[LI248] cells of each stage", source, s.Cells, 5),
		verdict.Setting("[LI248] largest gradient norm", source, s.Bilevel.Clip, 5),
	}
}

func table1Settings() []runs.Claim {
	const source = "Li+ 2021, Appendix C.1.1"
	s, err := search.AsPaperOn(supernet.DARTS.Name, "gaea-pc-darts")
	if err != nil {
		panic(err) // of a preset that is shipped
	}
	return []runs.Claim{
		verdict.Setting("[LI229] cells of the search", source, s.Cells, 8),
		verdict.Setting("[LI229] initial channels of the search", source, s.Channels, 16),
		verdict.Setting("[LI230] batch of the search", source, s.Batch, 256),
		verdict.Setting("[LI230] learning rate at the start", source, s.LearningRate, 0.1),
		verdict.Setting("[LI230] learning rate at the end of the cosine", source, s.LearningRateMin, 0.),
		verdict.Setting("[LI230] momentum", source, s.Momentum, 0.9),
		verdict.Setting("[LI230] weight decay", source, s.WeightDecay, 3e-4),
		verdict.Setting("[LI230] largest gradient norm", source, s.Bilevel.Clip, 5),
		verdict.Setting("[LI230] side of the cutout", source, s.Augment.Cutout, 0),
		verdict.Setting("[LI231] epochs before the architecture moves", source, s.Bilevel.Warmup, 10),
		verdict.Setting("[LI232] step size of EG", source, s.ArchRate, 0.1),
		verdict.Setting("[LI233] the architecture begins", source, s.Start, "uniform"),
	}
}

func table3Settings() []runs.Claim {
	const source = "Li+ 2021, Appendix C.1.3"
	return []runs.Claim{
		verdict.Setting("[LI227] searches of the first stage", "Li+ 2021, Appendix C.1", Table3Paper.Search.Seeds, 5),
		verdict.Setting("[LI236] epochs after which bad candidates are known", source, Table3Paper.Short, 20),
		verdict.Setting("[LI238] candidates that are trained to the end", source, Table3Paper.Kept, 3),
	}
}

func table5Settings() []runs.Claim {
	const source, images = "Li+ 2021, Section 4.2", 1281167. // of ILSVRC-2012, for training
	s, err := search.Preset(supernet.DARTS.Name, "gaea-pc-darts", "imagenet")
	if err != nil {
		panic(err) // of a preset that is shipped
	}
	share := func(n int) float64 { return math.Round(1000*float64(n)/images) / 10 } // %, as printed
	return []runs.Claim{
		verdict.Setting("[LI042] share of the images for the weights of the search on ImageNet, %", source,
			share(s.Parts.Train), 10.),
		verdict.Setting("[LI042] share for the architecture, %", source, share(s.Parts.Validation), 2.5),
		verdict.Setting("[LI043] epochs before the architecture moves on ImageNet", source, s.Bilevel.Warmup, 35),
		verdict.Setting("[LI044] step size of EG on ImageNet", source, s.ArchRate, 0.1),
		verdict.Setting("[LI045] epochs of the evaluation on ImageNet", source, training.AsPaper["imagenet"].Epochs,
			250),
	}
}
