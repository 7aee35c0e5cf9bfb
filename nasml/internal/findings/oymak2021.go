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
