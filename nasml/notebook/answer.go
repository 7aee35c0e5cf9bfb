package notebook

import (
	"fmt"
	"html"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// Answer displays a question with its answer in words, from the claims of a result: all that
// it has, or those whose name contains one of the texts in about:
//
//	notebook.Answer("Does GAEA still win without skip connections?", r, "GAEA DARTS (bilevel) above")
//
// The answer is yes where all of them hold, no where none does, and open where the runs do not
// tell; each claim stands below it with its number, its interval and its note.
func Answer(question string, r catalog.Result, about ...string) {
	text, err := answer(question, r.Check(), about)
	fail(err)
	if !gonbui.IsNotebook {
		fmt.Print(text)
		return
	}
	lines := strings.Split(strings.TrimSpace(html.EscapeString(text)), "\n")
	gonbui.DisplayHTML("<p><b>" + lines[0] + "</b></p><ul><li>" + strings.Join(lines[1:], "</li><li>") + "</li></ul>")
	gonbui.Sync() // a cell that ends at once would take its last output along
}

// answer is the question with its answer in a line, and a line for each claim.
func answer(question string, claims []runs.Claim, about []string) (string, error) {
	chosen := claimsAbout(claims, about)
	if len(chosen) == 0 {
		return "", fmt.Errorf("no claim of this result is about %q: take a part of one of the names %q", about,
			names(claims))
	}
	text := question + " " + yesOrNo(chosen) + "\n"
	for _, c := range chosen {
		text += sentence(c) + "\n"
	}
	return text, nil
}

// claimsAbout are the claims whose name contains one of the texts; all if there is none.
func claimsAbout(claims []runs.Claim, about []string) []runs.Claim {
	if len(about) == 0 {
		return claims
	}
	var chosen []runs.Claim
	for _, c := range claims {
		for _, text := range about {
			if strings.Contains(c.Name, text) {
				chosen = append(chosen, c)
				break
			}
		}
	}
	return chosen
}

func names(claims []runs.Claim) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.Name)
	}
	return all
}

// yesOrNo is the answer of claims together.
func yesOrNo(claims []runs.Claim) string {
	count := map[runs.Verdict]int{}
	for _, c := range claims {
		count[c.Holds]++
	}
	n := len(claims)
	switch {
	case count[runs.Holds] == n:
		return "Yes."
	case count[runs.Fails] == n:
		return "No."
	case count[runs.NotKnown] == n:
		return "These runs do not tell."
	}
	return fmt.Sprintf("Not as a whole: %d of %d statements hold, %d do not hold, %d are inconclusive.",
		count[runs.Holds], n, count[runs.Fails], count[runs.NotKnown])
}

// sentence is a claim with its number and verdict.
func sentence(c runs.Claim) string {
	text := strings.TrimPrefix(c.Name, "own: ")
	if c.Ours.Valid() {
		text += ": " + c.Ours.String()
		if c.Lo.Valid() && c.Hi.Valid() {
			text += fmt.Sprintf(" [%v, %v]", c.Lo, c.Hi)
		}
		text += ", " + c.Holds.String()
	}
	if c.Note != "" {
		text += ". " + c.Note
	}
	return text
}
