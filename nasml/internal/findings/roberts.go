package findings

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
