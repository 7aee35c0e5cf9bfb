// Package nasml is the map of the library, and holds its sources.
//
// nasml reproduces, varies and extends the figures, tables and theorems of four
// papers on weight-sharing neural architecture search:
//
//	Khodak+   Khodak, Li, Roberts, Balcan, Talwalkar 2020,
//	          "A Simple Setting for Understanding NAS with Weight-Sharing"
//	Oymak+    Oymak, Li, Soltanolkotabi, ICML 2021, "Generalization Guarantees for NAS with Train-Validation Split"
//	Roberts+  Roberts, Liang, Sala, "Understanding NAS by its Architecture Parameters"
//	GAEA      Li, Khodak, Balcan, Talwalkar, ICLR 2021, "Geometry-Aware Gradient Algorithms for NAS"
//
// # Packages
//
// A package is made when its first figure needs it. Readers import those directly below nasml; a floor knows
// those below it, which the linter holds, and the packages of two papers do not know each other.
//
// Ground floor, mathematics and data:
//
//	simplex     geometry of architecture parameters: updates, XNAS, entropy, Bregman divergence, stationarity
//	features    feature maps (random Fourier, hashed n-grams), ridge and linear SVM, mixtures with hypergradients
//	data        MNIST, CIFAR, ImageNet16-120, folders of photographs, IMDb, the tables of NAS-Bench-101 and 201,
//	            synthetic generators
//	trial       what the arithmetic of a trial knows of the house: random streams, results
//
// First floor, graphs:
//
//	backend     opens XLA/PJRT or the pure-Go backend, once a process; more devices of a CPU;
//	            backend/programs: keeps compiled programs on disk
//	bilevel     weights and architecture in turns: hypergradients, optimizers, batches, one search step
//	supernet    operations and their continuous mixtures: activation functions, the cells of NAS-Bench-201,
//	            DARTS and NAS-Bench-1Shot1; genotypes and their networks
//	search      the methods: by weight sharing (DARTS, GAEA, GDAS, SETN, RSPS, ENAS, XNAS), on one device or several,
//	            with updates of θ that keep a state; on a table (RS, REA, REINFORCE, BOHB)
//	training    networks of genotypes trained from scratch, as searches' architectures are evaluated
//
// Second floor, the lab:
//
//	lab         makes an entry out of its declaration: parameters, trials, picture, claims;
//	            lab/verdict: claims judged by slopes, shares, differences and bounds
//	study       cases, trials, records: one pool, one progress, checks of parameters
//	runs        the run store: trials by key, checkpoints, resume, seeds, statistics, claims, progress;
//	            runs/bucket: one that many machines share
//	code        which version of the code computes a trial
//	catalog     the list of figures, tables and theorems, and setting their parameters by name;
//	            catalog/papers: one import that registers those of all four papers
//
// Roof, what people call:
//
//	khodak2020  the figures and the corollary of Khodak+; khodak2020/halving: successive halving, Hyperband,
//	            weight-sharing rounds, generic over what an arm is
//	oymak2021   the figures and theorems of Oymak+; oymak2021/spectral: rank-one estimators and neural tangent
//	            kernels
//	roberts     the figure and theorems of Roberts+, and a checker of their conditions
//	li2021      the figures, tables and theorems of Li+ (GAEA)
//	notebook    what the cells of the notebooks call
//	command     the command nasml, also for a module of one's own; cmd/nasml: the program; cmd/goimports: what the
//	            kernel calls on a cell: goimports, and unused dot-imports go
//
// Behind them, in internal:
//
//	images      labelled images in memory and photographs, and the augmented batches that they become
//	kernels     depthwise convolutions, pools and batch norm, in XLA's operations and in C
//	loop        the epochs of searches and trainings: checkpoints, progress, resume
//	device      one call of a step: its state is donated, its report taken off
//	rank        rank correlations with intervals
//	limits      the limits of parameters, as tags of their fields
//	accept      shows that changed source computes what it did
//	claims      the ledger: a row for every claim of the papers, and what is known about it
//	findings    what is wrong in the papers and in their authors' programs
//	gallery     what is shipped as static pages, and as the first notebook
//	trace       search steps of other frameworks in a file, replayed
//	bench       the Figure 2 sweep and the supernet beside JAX and PyTorch, feature maps beside scikit-learn
//	steady      property tests draw the same cases in every run
//
// Package plots, beside nasml, draws figures from plain data and knows nothing of it.
//
// # Where to begin
//
//	a figure or theorem of your own   .github/CONTRIBUTING.md, "A figure of your own, in full", has a whole file;
//	                                  package lab says what each field is for
//	a search method of your own       search.Updates and search.Methods; the example of li2021.Compare is a whole
//	                                  program, which puts it beside DARTS, GAEA and random search
//	what a band or an error bar is    runs.Summary.Bounds
//	a cell that varies a figure       notebooks/guide/vary.md
//
// # From a cell to XLA
//
// A search of Figure 4 passes through these functions on its way from a cell to the device. Each does one thing;
// a theorem's way is the same without the lines of li2021, search and loop.
//
//	notebook.Run                 ends at an interrupt of the cell, panics with an error
//	lab.Entry.run                checks the parameters, fills the result's groups
//	li2021.SearchParams.run      derives the settings of every row, opens the images
//	lab.Bench.Compute            makes cases of groups and seeds, forecasts the missing trials
//	study.Study.Batches          opens the store, shows the progress of all cases
//	study.Study.group            gives every case its key, opens the device if one is missing
//	runs.Store.Compute           reads what is stored, locks what is not
//	runs.Job.run                 one trial: its checkpoint, what it used, its failure or its record
//	lab.Each                     opens a searcher once for all seeds of a row
//	li2021/internal/searching    the trial: what of a search its record holds
//	search.Runner.Search         starts at first weights or at a checkpoint
//	loop.Loop.Run, Epoch, step   epochs and steps; saves, observes, ends early
//	search.run.advance           puts the batches of a step on the device
//	device.Steps                 donates the state, calls the program, takes its report
//	graph.Exec.Call (GoMLX)      builds the graph at the first step, lets XLA compile it, and runs it
//
// The graph of a step is built from the outside in:
//
//	search.Step.Graph            the losses of weights and architecture on the batches
//	bilevel.Search.Step          whose turn it is, the gradients
//	bilevel.Rule.Step            an optimizer: weight decay, clipping, the update
//	simplex.EG                   the update of θ, or a reader's own
//
// # Data flow
//
// A figure X has parameters XParams with presets XQuick and XPaper. X(ctx, p)
// splits them into trials, looks each up in the run store by its key, runs the
// missing ones and returns an XResult, which draws itself (Figure) and judges the
// paper's claims (Check). Drawing never computes; computing never draws.
//
// # Notation
//
//	symbol          Go                     shape                     paper
//	α               alpha                  scalar, or [S, V, 1, 1]   Oymak+ Sec. 7a: activation parameter
//	Δα              DeltaAlphas            > 0                       Oymak+ Sec. 7a
//	σ_α             supernet.MixActivations elementwise              Oymak+ Sec. 7a: (1−α)σ₀ + ασ₁
//	θ               w, state               [S, V, out, in] a layer   Oymak+: trained weights
//	W               w[0]                   [S, V, k, d]              Oymak+ Sec. 4.2, 7a: input layer
//	v               headWeights            [k], ±√(c₀/k)             Oymak+ Theorem 3
//	k               Width                                            Oymak+: neurons of the first layer
//	η               LearningRate                                     all
//	S, V, B, d                             seeds, values of α, batch, input features
//
//	θ               theta                  [|E|, |O|]                GAEA Sec. 3.3: operation weights, a row a simplex
//	α               theta                  [|E|, |O|]                DARTS, GDAS: logits, θ = softmax(α)
//	w               W, w                   as supernet.Net.Weights   GAEA eq. 2: shared weights
//	F, G            Outer, Inner           scalar                    bilevel: validation and training loss
//	φ, D_φ          simplex.Phi, BregmanOf scalar                    GAEA Sec. 3.1, 3.3
//	Δ_λ             simplex.Stationarity   scalar                    GAEA eq. 7
//	τ               TauFirst, TauLast      scalar                    GDAS: temperature
//	C, N            Channels, Cells                                  NAS-Bench-201: of the first stage, of each stage
//
//	p̄, h̄            PBar, HBar             p/n, h/n                  Oymak+ Sec. 5
//	M̂, ρ²            spectral.Moment, Correlation2                    Oymak+ (8)–(11): rank-one estimate
//	                                                                  and its squared correlation
//	K_α, λ₀          K, λ_min               [n, n]                    Oymak+ Definition 3, Assumption 3
//	φ_α              features.Mixture       Σ α_i φ_i                 Oymak+ Definition 2
//	L_i, A_i, D_ij   Loss, Far, Between     of roberts.Report         Roberts+ Sec. 3: loss of operation i,
//	                                                                  of the rest, between two
//	γ                Gamma                  > 0, joint weak convexity GAEA Assumption 1
//	T, V, 𝒞          Train, Valid, Arms                               Khodak+ Sec. 2: training and validation set,
//	                                                                  configurations
//
// The papers disagree in one letter that matters: θ is the weights in Oymak+
// and the architecture parameters in GAEA.
package nasml
