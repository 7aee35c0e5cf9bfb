package findings

const li = "Li+ 2021"

var li2021 = []Finding{
	{
		ID: "li2021/theorem2-joint-convexity", Kind: Paper, Paper: li, Where: "Setting 1, Theorem 2",
		Title: "Weak convexity of each block is not enough",
		Printed: "f is γ_i-relatively weakly convex in each block alone, and the proof takes f to be so jointly " +
			"with γ = max γ_i.",
		True: "f + γφ has to be convex jointly, as Assumption 1 has it. Block-wise constants can be far smaller.",
		Shown: "f(x, y) = xy on [−1, 1]² is linear in each block, so that any γ > 0 is allowed. From (0, 0) the " +
			"algorithm never moves and Δ = 8γ² for every T: 0.08, 0.5 and 1.28 at γ = 0.1, 0.25 and 0.4. At T = " +
			"10⁶ that is 30, 118 and 239 times a bound that falls as T^−½. With the joint γ = 1, Δ = 0.",
		Tests: []Test{{"nasml/li2021/internal/algorithm2", "TestSaddleStationarity"},
			{"nasml/li2021", "TestTheorem2OnSmallRuns"}},
		Follows: "Theorem 2 and Corollary 1 hold with the joint γ. Theorem 1 assumes a joint γ already. A bilinear " +
			"coupling of weights and architecture is the usual case, so that γ cannot be read off blocks.",
		Notebook: "notebooks/li2021/theorem2_blocks.ipynb",
		Rows:     []string{"LI023"},
		Claims: []Claim{
			{"li2021/theorem2", "Setting 1 with γ = 0.1 (block-wise)"},
			{"li2021/theorem2", "Setting 1 with γ = 0.25 (block-wise)"},
			{"li2021/theorem2", "Setting 1 with γ = 0.4 (block-wise)"},
		},
	},
	{
		ID: "li2021/corollary1-constant", Kind: Paper, Paper: li, Where: "Corollary 1, Theorem 1",
		Title: "The constants 2 and 16 do not follow",
		Printed: "Theorem 2 gives E Δ ≤ 2L√(2bγ(f¹−f*)/T) at the printed step, and T = 16γF(G_w²+G_θ²)/ε² in " +
			"Theorem 1.",
		True: "Theorem 2 with γ̂ = 2γ gives 3 in place of 2 at the printed step, and 2√2 ≈ 2.83 at 1/√2 of it. " +
			"Theorem 1 then has 36 or 32 in place of 16.",
		Shown: "The bound is 2b(f¹−f*)/(Tη) + 2γL²η. The printed step makes the first term one and the second two " +
			"of the units L√(2bγ(f¹−f*)/T). The printed 2 needs γ in place of γ̂ in the second.",
		Tests: []Test{{"nasml/li2021", "TestCorollary1OnSmallRuns"}},
		Follows: "The rate stays, and T grows by a factor of 2 to 2.25. The printed 2 may still be true: the worst " +
			"function found here needs 0.97 [0.90, 1.04].",
		Notebook: "notebooks/li2021/corollary1_constant.ipynb",
		Rows:     []string{"LI024", "LI025"},
		Claims:   []Claim{{"li2021/corollary1", "the constant 2 of the bound follows from Theorem 2"}},
	},
	{
		ID: "li2021/assumption1-weights", Kind: Paper, Paper: li, Where: "Assumption 1.1",
		Title:   "The weights' part of the regularizer is missing",
		Printed: "f(w, θ) + γφ(θ) is convex on ℝ^d × Θ.",
		True: "f(w, θ) + γ(½‖w‖² + φ(θ)) is, with the joint distance-generating function that the same section " +
			"uses for Δ.",
		Shown: "φ does not contain w: as printed, f(·, θ) has to be convex, whatever γ is. The smallest supernets " +
			"here are not: their Hessian in w has a negative eigenvalue.",
		Tests: []Test{{"nasml/li2021/internal/smoothnet", "TestAssumption1AsPrintedNeedsConvexWeights"},
			{"nasml/li2021/internal/smoothnet", "TestSupernetWeakness"}},
		Follows: "A misprint. As printed, Theorem 1 would cover no neural network; as meant, it covers smooth " +
			"ones.",
		Notebook: "notebooks/li2021/theorem1_convergence.ipynb",
	},
	{
		ID: "li2021/fixed-points-on-the-boundary", Kind: Paper, Paper: li, Where: "Section 3.2",
		Title:   "A small Δ does not mean a stationary point",
		Printed: "Fixed points of the proximal operator are points without a feasible descent direction.",
		True: "That holds for the Euclidean φ. For GAEA's entropy it holds in the interior only: every vertex of " +
			"the simplex is a fixed point, for every f.",
		Shown: "For the loss ⟨(1, 0), θ⟩ the worst vertex has Δ = 0 and a Frank–Wolfe gap of 1. At a distance of " +
			"10⁻⁹ from it Δ = 1.3·10⁻⁹.",
		Tests: []Test{{"nasml/simplex", "TestStationarityVanishesNearEveryVertex"}},
		Follows: "Theorem 1 stays true, but for EG it promises less than the text says: a search that has " +
			"collapsed onto the wrong operation counts as stationary. The gap should be reported with Δ.",
		Notebook: "notebooks/li2021/stationarity_meaning.ipynb",
		Claims:   []Claim{{"li2021/stationarity", "own: fixed points of prox have no feasible descent direction"}},
	},
	{
		ID: "li2021/logits-no-factor", Kind: Paper, Paper: li, Where: "Section 3.3",
		Title: "There is no factor |O| over SGD on logits",
		Printed: "With entry-wise bounded gradients EG gains up to a factor |O| over SGD, on the simplex or on the " +
			"logits.",
		True: "On the simplex the bounds differ by |O|. On the logits they do not: with θ's gradient in [−1, 1] " +
			"the logits' gradient has a squared length of at most 1 an edge, as EG's in its dual norm.",
		Shown: "‖θ ⊙ (g − ⟨θ, g⟩)‖² ≤ Var_θ(g) ≤ 1, and 1/|O| at the uniform point for entries ±1. With tuned " +
			"steps SGD's iterations over EG's grow as |O|^0.07 [−0.12, 0.26] on the logits and as |O|^0.83 [0.72, " +
			"0.93] on the simplex.",
		Tests: []Test{{"nasml/li2021", "TestGradientOfLogitsHasNoFactor"}, {"nasml/li2021", "TestMirrorOnSmallRuns"}},
		Follows: "DARTS and PC-DARTS descend logits, so that the dual norm alone is no reason for GAEA to beat " +
			"them. What it gains over them has to come from elsewhere, as from sparsity.",
		Notebook: "notebooks/li2021/mirror_geometry.ipynb",
		Rows:     []string{"LI022"},
		Claims:   []Claim{{"li2021/mirror", "SGD on logits over EG, tuned, grows like |O|"}},
	},
	{
		ID: "li2021/within-one-percent", Kind: Paper, Paper: li, Where: "Section 4.3 with Figure 2",
		Title:   "The paper's own curves are not within 1 %",
		Printed: "Existing methods come within 1 % test error of the best network in each space.",
		True: "The best weight-sharing methods that Figure 2 draws as dashed lines end 1.10 %, 0.85 % and 1.40 % " +
			"above it, and the authors' own PC-DARTS 1.00 %, 1.07 % and 1.06 %. On the third space none is within " +
			"1 %.",
		Shown: "Numbers of the authors' figure files (liamcli/gaea_release, March 2020), which were not compared " +
			"with the printed figure.",
		Tests: []Test{{"nasml/li2021", "TestPublishedRegretsExceedOnePercent"}},
		Follows: "No result of GAEA is touched. That methods are near saturation explains less on the third space, " +
			"where GAEA ends at 0.89 %.",
		Notebook: "notebooks/li2021/figure2_nasbench1shot1.ipynb",
		Rows:     []string{"LI053"},
		Claims:   []Claim{{"li2021/figure2", "the published curves: the best of Zela+ 2020 within 1 %"}},
	},
	{
		ID: "li2021/darts-parameters", Kind: Paper, Paper: li, Where: "Tables 1 and 4",
		Title:   "First-order DARTS has 3.2 M parameters, not 3.3 M",
		Printed: "3.3 M parameters, taken from Liu+ 2019.",
		True: "The cell that Liu+ published as their first-order result has 3,169,414 parameters. Either the " +
			"number or the published cell is not that of the row.",
		Shown: "A count is exact and needs no training. The other published cells agree with the printed digit.",
		Tests: []Test{{"nasml/supernet", "TestParametersOfPublishedCells"}},
		Follows: "Nothing for the comparison: errors are not affected, and the cell is a little smaller than " +
			"stated.",
		Notebook: "notebooks/li2021/table4_cifar10.ipynb",
		Rows:     []string{"LI191"},
		Claims: []Claim{{"li2021/table1", "DARTS (1st order): parameters, M"},
			{"li2021/table4", "DARTS (1st order): parameters, M"}},
	},
	{
		ID: "li2021/stage2-saving", Kind: Paper, Paper: li, Where: "Appendix C.1.3",
		Title: "Training 3 of 10 networks cannot save 75 %",
		Printed: "Stopping poor networks after 20 epochs saved over 75 % of the training; 3 of 10 ran all 600 " +
			"epochs.",
		True:     "67.7 %, and at most 70 % even if the other seven cost nothing.",
		Shown:    "1 − (3·600 + 7·20)/(10·600) = 0.677, and 1 − 3/10 = 0.7.",
		Tests:    []Test{{"nasml/li2021", "TestSavedShare"}},
		Follows:  "The saving is a little smaller. No result depends on it.",
		Notebook: "notebooks/li2021/table3_protocol.ipynb",
		Rows:     []string{"LI237"},
		Claims:   []Claim{{"li2021/table3", "share of the cost of stage 2 that is saved, %"}},
	},
}

const (
	gaeaCode    = "liamcli/gaea_release@1604615"
	oneShotCode = "liamcli/nasbench-1shot1@e369bd7"
	pcDartsCode = "liamcli/PC-DARTS@dc3cfe0"

	searchesNotebook = "notebooks/li2021/table2_nasbench201.ipynb"
	leftNotebook     = "notebooks/li2021/figure1_left_entropy.ipynb"
)

var li2021Code = []Finding{
	{
		ID: "li2021/code-uncleared-1shot1", Kind: Code, Paper: li,
		Where:   oneShotCode + ", optimizers/edarts/architect.py:80, 95, 111",
		Title:   "On NAS-Bench-1Shot1 the training gradient is not cleared",
		Printed: "θ moves by the gradient of the validation loss.",
		True: "The gradient of θ is cleared after θ's own step only. The weights' pass then adds the training " +
			"gradient, and the next step of θ moves by ∇L_valid(w_t) + ∇L_train(w_{t−1}). After a warm-up the " +
			"first step adds the training gradients of all its batches.",
		Shown: "A replayed trace agrees with this to rounding and does not without the second term. In the " +
			"searches here the first epoch that moves θ loses 4.7 times as much entropy of the operations (quick " +
			"scale).",
		Tests: []Test{{"nasml/internal/trace", "TestOneShotGAEAMovesByWhatIsLeft"},
			{"nasml/bilevel", "TestStepAddsUpWhatIsNotCleared"}},
		Follows: "Figure 2 and the middle of Figure 1 are of a search that is half single-level. Whether the end " +
			"of the search changes is inconclusive at quick scale.",
		Notebook: "notebooks/li2021/uncleared_gradients.ipynb",
	},
	{
		ID: "li2021/code-uncleared-imagenet", Kind: Code, Paper: li,
		Where:   pcDartsCode + ", architect_edarts.py:38-62",
		Title:   "On ImageNet the training gradient is not cleared either",
		Printed: "θ is fixed for 35 epochs and then moves by the validation gradient.",
		True: "θ's gradient is never cleared before the step. The first step, in epoch 35, adds the training " +
			"gradients of 35 epochs; the sum is clipped to norm 5.",
		Shown: "In a step by hand the gradient that the warm-up leaves is not 0, changes the next step of θ, and " +
			"is gone after it.",
		Tests: []Test{{"nasml/internal/trace", "TestGAEAStepOfTheAuthorsByHand"}},
		Follows: "The ImageNet search of Tables 1 and 5 begins with one step along the accumulated training " +
			"gradient. What that changes was not measured: it needs ImageNet.",
		Notebook: "notebooks/li2021/uncleared_gradients.ipynb",
	},
	{
		ID: "li2021/code-validation-twice", Kind: Code, Paper: li,
		Where:   oneShotCode + ", optimizers/edarts/architect.py:117-118",
		Title:   "Each validation batch passes twice",
		Printed: "A step of θ evaluates the validation loss once.",
		True: "The program makes the pass twice in training mode, so that running statistics move twice by " +
			"validation images.",
		Shown: "After a step the running means differ from those of one pass, by less than 10⁻⁴: each pass leaves " +
			"0.003 of what was there.",
		Tests:    []Test{{"nasml/internal/trace", "TestOneShotGAEAMovesByWhatIsLeft"}},
		Follows:  "It costs time and hardly changes a number.",
		Notebook: "notebooks/li2021/uncleared_gradients.ipynb",
	},
	{
		ID: "li2021/code-no-warmup", Kind: Code, Paper: li, Where: gaeaCode + ", cnn/train_search.py",
		Title:   "No warm-up on the DARTS space",
		Printed: "The supernet is trained for 10 epochs before θ moves (Appendix C.1.1).",
		True:    "The search loop has no warm-up for GAEA PC-DARTS, and the published curve moves at once.",
		Shown: "Entropy of the published curve: 2.0793 after the first epoch and 2.0625 after the sixth, where ln " +
			"8 = 2.0794.",
		Tests: []Test{{"nasml/li2021", "TestPublishedSearchHasNoWarmup"},
			{"nasml/search", "TestWherePaperAndCodeDiffer"}},
		Follows: "The left of Figure 1 is not of the search that the appendix describes. The preset \"code\" has " +
			"none, \"paper\" has 10 epochs.",
		Notebook: leftNotebook,
	},
	{
		ID: "li2021/code-baseline-edges", Kind: Code, Paper: li, Where: gaeaCode + ", cnn/architect_darts.py:14, 53-56",
		Title:   "The PC-DARTS of the repository has no edge normalization",
		Printed: "PC-DARTS is the baseline, whose edges have weights that are learned (Xu+ 2020).",
		True:    "The repository's version fixes all edges to 1 and has no warm-up.",
		Shown:   "Its settings differ from the paper's in edge weights and in the 15 epochs of warm-up.",
		Tests:   []Test{{"nasml/search", "TestWherePaperAndCodeDiffer"}},
		Follows: "By the folder it was drawn from, the baseline on the left of Figure 1 is this one. Tables 1 and " +
			"4 quote PC-DARTS from its own paper and are not touched.",
		Notebook: leftNotebook,
	},
	{
		ID: "li2021/code-clamp", Kind: Code, Paper: li, Where: gaeaCode + ", cnn/architect_edarts.py:10-13",
		Title:   "θ is clamped",
		Printed: "θ ← θ ⊙ exp(−η∇), normalized (eq. 8).",
		True: "Weights below 10⁻⁵ are set to 10⁻⁵ first. GAEA GDAS normalizes and then clamps, so that a row can " +
			"sum to more than 1. Before normalizing, the clamp also sees a gradient's mean, which eq. 8 does not.",
		Shown: "Adding 100 to each of four gradients, at η = 1, clamps all four weights and makes them equal; eq. " +
			"8 does not change under such a shift.",
		Tests: []Test{{"nasml/simplex", "TestClampedVariantsByHand"},
			{"nasml/simplex", "TestEGDoesNotSeeAShiftOfARow"}},
		Follows: "No operation is lost for good, and the entropy has a floor. `simplex.Updates` has eq. 8 and both " +
			"variants.",
		Notebook: "notebooks/li2021/figure1_entropy.ipynb",
	},
	{
		ID: "li2021/code-nasbench201", Kind: Code, Paper: li, Where: gaeaCode + ", configs of NAS-Bench-201",
		Title:   "GAEA DARTS on NAS-Bench-201: 24 channels and half a schedule",
		Printed: "16 initial channels, 25 epochs, learning rate 0.025 → 0.001 (Appendix C.3).",
		True:    "24 channels, and a cosine over 50 epochs of which 25 are run.",
		Shown:   "The rate in the last epoch is 0.0138, not 0.001.",
		Tests: []Test{{"nasml/search", "TestWherePaperAndCodeDiffer"},
			{"nasml/search", "TestTheCodeOfGAEAStopsItsScheduleHalfWay"}},
		Follows:  "Run by its README, the program is not the search of Table 2 as the appendix describes it.",
		Notebook: searchesNotebook,
	},
	{
		ID: "li2021/code-gdas", Kind: Code, Paper: li, Where: gaeaCode + ", GAEA GDAS",
		Title:   "GAEA GDAS: another rate, another regularizer, another temperature",
		Printed: "Step size 0.1 for θ, and no regularizer or warm-up is mentioned; τ from 10 to 0.1, as in GDAS.",
		True:    "Step size 0.01, an entropic regularizer of weight 0.01, and 50 epochs of warm-up.",
		Shown:   "τ begins to fall after the warm-up and ends at 3.42 after 150 epochs, not at 0.1.",
		Tests:   []Test{{"nasml/search", "TestTheCodeOfGAEAStopsItsScheduleHalfWay"}},
		Follows: "The program and Table 2's GAEA GDAS as described are two searches. At τ = 3.42 samples are far " +
			"from those of the final distribution.",
		Notebook: searchesNotebook,
	},
	{
		ID: "li2021/code-evaluation", Kind: Code, Paper: li, Where: gaeaCode + ", configs/cnn/mode/eval.yaml",
		Title:    "Final training: other batch and drop path",
		Printed:  "Batches of 128 and a drop-path rate of 0.3 (Appendix C.1.2).",
		True:     "Batches of 96 and a rate of 0.2, those of DARTS. The README overrides the rate only.",
		Shown:    "The list of differences between the two settings has these two and no other.",
		Tests:    []Test{{"nasml/training", "TestDifferences"}},
		Follows:  "Repeating Table 1 with the program's defaults trains under other settings than the paper's.",
		Notebook: "notebooks/li2021/table1_cifar10.ipynb",
	},
}
