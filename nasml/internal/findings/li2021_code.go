package findings

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
