package findings

const oymak = "Oymak+ 2021"

var oymak2021 = []Finding{
	{
		ID: "oymak2021/lemma1-scale", Kind: Paper, Paper: oymak, Where: "Lemma 1",
		Title:   "R³ should be R⁴",
		Printed: "h̄_eff = (h+1) log(20 R³ B n_T² λ₀⁻² (B n_T + 1)) for every R ≥ 1, also without a ridge.",
		True:    "With R⁴ in place of R³, which is also the power in M of Theorem 2.",
		Shown: "Without a ridge f_α does not change under α → cα, so that neither the Lipschitz constant times R " +
			"nor the gap changes. But λ₀ → c²λ₀, and the printed R³λ₀⁻² falls like 1/c, below what was measured in " +
			"10 of 40 cases. With R⁴ it is invariant, and no case violates it.",
		Tests: []Test{{"nasml/oymak2021", "TestLemma1Run"}, {"nasml/oymak2021/internal/lipschitz", "TestArgument"},
			{"nasml/internal/gallery", "TestEveryEntryStaysAsItIs"}},
		Follows: "For a large domain the printed h̄_eff is below 0 and the bound cannot hold. At R ≈ 1 it has " +
			"orders of magnitude to spare, and only its logarithm counts: the lemma's message stays.",
		Notebook: "notebooks/oymak2021/lemma1_feature_maps.ipynb",
		Rows:     []string{"oymak2021/lemma1"},
		Claims:   []Claim{{"oymak2021/lemma1", "as printed for every R ≥ 1"}},
	},
	{
		ID: "oymak2021/lemma2-joint-convexity", Kind: Paper, Paper: oymak, Where: "Lemma 2",
		Title: "Lipschitz minimizers need joint convexity",
		Printed: "If the training loss is μ-strongly convex in θ and L̄-smooth in α, then θ_α is " +
			"√(L̄/μ)-Lipschitz.",
		True: "The loss has to be convex in (α, θ) jointly. Without that the constant is sup ‖∂²L/∂θ∂α‖/μ.",
		Shown: "(μ/2)θ² − kμαθ is linear in α, so that L̄ = 0, and θ_α = kα moves. Of 100,000 random quadratics " +
			"that are convex in θ only, 70,391 violate the bound; of jointly convex ones none, and some attain it. " +
			"The other constant is never violated.",
		Tests: []Test{{"nasml/oymak2021", "TestLemma2Run"},
			{"nasml/oymak2021/internal/minimizer", "TestQuadratics"}},
		Follows: "The lemma does not cover the paper's own example: ridge regression on a superposition of feature " +
			"maps (6) is not jointly convex, and violates the bound in 40 of 60 cases. Assumption 1 still holds " +
			"there, with another constant, as Lemma 1 has it.",
		Notebook: "notebooks/oymak2021/lemma2_minimizer.ipynb",
		Rows:     []string{"oymak2021/lemma2"},
		Claims: []Claim{
			{"oymak2021/lemma2", "as printed: "}, {"oymak2021/lemma2", "applied to ridge regression (6)"},
		},
	},
	{
		ID: "oymak2021/merged-every-alpha", Kind: Paper, Paper: oymak, Where: "Section 5",
		Title:   "With merged sets and 2n ≤ p, not every α fits",
		Printed: "If both sets are merged and 2n ≤ p, the weights fit all labels perfectly for any choice of α.",
		True:    "They do for almost every α, and for every α once p ≥ 2n + h − 1.",
		Shown: "At 2n = p let Z₁ and Z₂ be the matrices of two operations. A real eigenvalue −s of Z₂⁻¹Z₁ makes Z " +
			"of α ∝ (1, s, 0, …) singular. Such an α was found in 60 of 60 draws, and leaves 9.7 % [7.4, 12.0] of " +
			"the squared labels that no θ fits.",
		Tests: []Test{{"nasml/oymak2021/internal/lowrank", "TestExceptionalDirection"},
			{"nasml/internal/gallery", "TestEveryEntryStaysAsItIs"}},
		Follows: "Nothing for the argument: a merged set cannot tell almost any α from another, which is why the " +
			"paper splits it.",
		Notebook: "notebooks/oymak2021/theorem4_spectral.ipynb",
		Rows:     []string{"oymak2021/sec5-merged"},
		Claims:   []Claim{{"oymak2021/theorem4", "at 2n = p this is so for every α, as the paper says"}},
	},
}

const robertsPaper = "Roberts+"

var roberts = []Finding{
	{
		ID: "roberts/conclusion-index", Kind: Paper, Paper: robertsPaper,
		Where: "Section 4 and end of Theorem 7's proof",
		Title: "The conclusion is printed with one index twice",
		Printed: "If operation i has the smaller loss, then α_i < α_i (twice, in the informal result and in the " +
			"proof).",
		True: "α_j < α_i, as Theorems 1 and 4 have it.",
		Shown: "No α is below itself. With α_j < α_i every pair of the random problems that satisfies the " +
			"condition is in order.",
		Tests:    []Test{{"nasml/roberts/internal/mixture", "TestTheoremAndExactCriteria"}},
		Follows:  "A misprint: nothing changes.",
		Notebook: "notebooks/roberts/theorem7_ranking.ipynb",
	},
	{
		ID: "roberts/labels-and-realizability", Kind: Paper, Paper: robertsPaper, Where: "Section 3 with Assumption 3",
		Title: "Labels ±1 and realizability exclude each other",
		Printed: "Labels are ±1, real labels are an extension, and every theorem assumes that the labels are the " +
			"output of the mixture, y = f(x, W*).",
		True: "The mixture's output is a real number, so that Assumption 3 needs real labels. With labels ±1 the " +
			"theorems do not apply.",
		Shown: "With y = sign f(x, W*) for random networks no problem is realized, and pairs that satisfy the " +
			"condition come in the wrong order.",
		Tests: []Test{{"nasml/roberts/internal/mixture", "TestViolationsRefuteTheConclusion"}},
		Follows: "The theorems are about regression, not about classification. For other labels the condition has " +
			"to be strengthened by the residual R: L_j − L_i > 2√(D_ij R) is enough.",
		Notebook: "notebooks/roberts/theorem1_two.ipynb",
	},
}

const khodak = "Khodak+ 2020"

const corollary31Notebook = "notebooks/khodak2020/corollary31_bilevel.ipynb"

var khodak2020 = []Finding{
	{
		ID: "khodak2020/theoremA1-lipschitz", Kind: Paper, Paper: khodak, Where: "Theorem A.1",
		Title:   "The bound of uniform convergence lacks the Lipschitz constant",
		Printed: "For an L-Lipschitz, B-bounded loss, P(sup gap ≥ 3ε) ≤ 2 N(H, ε) exp(−mε²/(2B²)), whatever L is.",
		True: "It is true for L ≤ 5/4 and false for L > 3. With N(H, ε/L) in place of N(H, ε) it is true for every " +
			"L ≥ 1.",
		Shown: "Let H be all functions with |h| ≤ ε, which one ball covers, and the loss min(1, 4|h|). At ε = 0.1 " +
			"and m = 2,000 the gap exceeds 3ε in 2,000 of 2,000 samples; the bound is 9.08·10⁻⁵.",
		Tests: []Test{{"nasml/khodak2020", "TestTheorem31NeedsALipschitzConstant"},
			{"nasml/internal/gallery", "TestEveryEntryStaysAsItIs"}},
		Follows: "The paper quotes it as a standard result; the usual proof gives the form with ε/L. What the " +
			"paper builds on it needs a small L or a finer cover, see the next finding.",
		Notebook: corollary31Notebook,
		Rows:     []string{"khodak2020/thmA1"},
		Claims:   []Claim{{"khodak2020/corollary31", "P(sup gap ≥ 3ε) at most the bound, L = 4"}},
	},
	{
		ID: "khodak2020/theorem31-lipschitz", Kind: Paper, Paper: khodak, Where: "Theorem 3.1, Theorem A.2",
		Title:   "The main theorem asks for no Lipschitz constant and needs one",
		Printed: "The excess risk is bounded for every loss that is B-bounded.",
		True: "The loss also has to be L-Lipschitz with L ≤ 3/2, or the version entropy has to be taken at the " +
			"scale ε/L. For L ≤ 3/2 the constants are right: Hoeffding's exponent leaves a factor of four, which " +
			"pays for the steps that the proof skips.",
		Shown: "Weights are a list of points where the function is 0; elsewhere it is ε = 0.1. One more weight " +
			"makes it 0 everywhere. With the loss min(1, 4|h|) a solution of the bilevel problem is 0 on T and V " +
			"and has risk 0.4. The best risk is 0, ε* = 0, and the theorem promises at most 0.372 for |V| = 2,000 " +
			"and δ = 0.1.",
		Tests: []Test{{"nasml/khodak2020", "TestTheorem31NeedsALipschitzConstant"}},
		Follows: "The corollaries for feature maps stay: there the version space is finite, so that the cover's " +
			"scale goes to 0 and L does not matter.",
		Notebook: corollary31Notebook,
	},
	{
		ID: "khodak2020/settingA3-count", Kind: Paper, Paper: khodak, Where: "Setting A.3",
		Title:   "The count of architectures fails for one operation",
		Printed: "Graphs on N nodes with one of K operations at each edge are at most K^(N²) configurations.",
		True: "There are (K+1)^(N(N−1)/2), since an edge can also be absent. That is at most K^(N²) for K ≥ 2, and " +
			"more for K = 1.",
		Shown: "N = 3 and K = 1: 2³ = 8 graphs, and the bound is 1.",
		Tests: []Test{{"nasml/khodak2020", "TestSettingA3CountsAbsentEdges"}},
		Follows: "Nothing for the paper: its spaces have K ≥ 2, where log |C| = O(N² log K) is right. With K+1 in " +
			"place of K it always is.",
		Notebook: corollary31Notebook,
	},
}

const khodakCode = "mkhodak/weight-sharing@1698a6b"

var khodak2020Code = []Finding{
	{
		ID: "khodak2020/code-scores", Kind: Code, Paper: khodak, Where: khodakCode + ", hyper.py:191-232",
		Title:   "Configurations are scored by errors, not by losses",
		Printed: "Algorithm 1 keeps the half whose mean validation loss is at most the median.",
		True: "The program scores by 0-1 accuracy. Such scores tie often, all that tie with the median are kept, " +
			"and only the first round trims the surplus.",
		Shown: "Eight configurations with equal scores leave 4, 2 and 1 under the algorithm's rule, and 4, 4 and 4 " +
			"under the program's.",
		Tests: []Test{{"nasml/khodak2020/halving", "TestTies"}, {"nasml/khodak2020/halving", "TestDifferences"}},
		Follows: "The figures are of another rule than the algorithm. Reading \"paper\" has the text's, reading " +
			"\"code\" the program's.",
		Notebook: "notebooks/khodak2020/figure2_oracle.ipynb",
	},
	{
		ID: "khodak2020/code-fast-dimensions", Kind: Code, Paper: khodak, Where: khodakCode + ", hyper.py:309-321",
		Title:    "Fast weight sharing never shares weights at the full dimension",
		Printed:  "The dimension grows by √2 a round, and the last round has all d features (Appendix B.1).",
		True:     "The last shared fit has d/√2 features; all d are used only when the winner is trained again.",
		Shown:    "For d = 100,000 and eight rounds the text gives 8,839 to 100,000, the program 6,250 to 70,711.",
		Tests:    []Test{{"nasml/khodak2020/halving", "TestDimsAreThoseOfPaperAndCode"}},
		Follows:  "Figure 3's fast curves are of a search with smaller maps in every round than described.",
		Notebook: "notebooks/khodak2020/figure3_time.ipynb",
	},
	{
		ID: "khodak2020/code-ladders", Kind: Code, Paper: khodak, Where: khodakCode + ", run_imdb.sh, hyperband.py",
		Title:   "On IMDb 2²⁴ features are used, not 100K",
		Printed: "All algorithms have at most 100K features (Appendix B.1).",
		True: "The script for IMDb hashes into 2²⁴ = 16,777,216 bins. Random search tries 4 configurations on " +
			"CIFAR-10 and 18 on IMDb, where weight sharing starts from 256.",
		Shown: "Successive halving then runs 18, 9, 4 and 2 configurations at 2²¹ to 2²⁴ features on IMDb, and 64, " +
			"16, 4 and 1 at 1,562 to 100,000 on CIFAR-10.",
		Tests: []Test{{"nasml/khodak2020", "TestLaddersAreTheAuthors"}},
		Follows: "Times of Figure 3 (right) are of another problem size than stated. The comparison at equal " +
			"solver calls in Figure 2 is not touched.",
		Notebook: "notebooks/khodak2020/figure3_time.ipynb",
	},
	{
		ID: "khodak2020/code-mixed-counts", Kind: Code, Paper: khodak, Where: khodakCode + ", features.py:151-174",
		Title:   "Word weights of a configuration depend on the other configurations",
		Printed: "Each configuration is a feature map of its own; Naive Bayes and SIF weights belong to it.",
		True: "While weights are shared, the program counts n-grams in the mixed matrix of all active " +
			"configurations, so that the map changes with the assignment.",
		Shown: "The same text under the same configuration gets other features when its neighbours change.",
		Tests: []Test{{"nasml/features", "TestReadings"}},
		Follows: "On IMDb the shared and the final features of a configuration differ. Reading \"paper\" has one " +
			"map.",
		Notebook: "notebooks/khodak2020/figure2_oracle.ipynb",
	},
}
