package command

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// noWork ends what would compute anything.
type noWork struct {
	runs.Progress
	end context.CancelCauseFunc
}

func (w noWork) Step(int, string) {
	w.end(errors.New("a trial was computed: its code or the preset has changed since, so it has to be recomputed"))
}

// Where the project ships the trials of a paper scale, they are all that the
// preset needs, and of the code as it stands.
func TestPaperScaleIsDrawnFromWhatIsShipped(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	found := 0
	for _, e := range catalog.All() {
		files, err := filepath.Glob(
			filepath.Join(root, "nasml", filepath.Dir(e.ID), "records", filepath.Base(e.ID), "paper.jsonl*"),
		)
		require.NoError(t, err)
		if len(files) == 0 || e.ID == "oymak2021/figure2" { // of which a part was never run
			continue
		}
		found++
		t.Run(e.ID, func(t *testing.T) {
			t.Setenv("NASML_DATA", t.TempDir()) // what is shipped is drawn without its data
			store, err := runs.Open(t.TempDir())
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(runs.WithStore(t.Context(), store))
			defer cancel(nil)
			r, err := e.Run(runs.WithProgress(ctx, noWork{runs.Silent, cancel}), catalog.Paper, nil)
			require.NoError(t, context.Cause(ctx))
			require.NoError(t, err)
			require.NotEmpty(t, r.Records())
			for _, c := range r.Check() {
				require.NotEmpty(t, c.Source, c.Name)
			}
		})
	}
	require.Positive(t, found)
}
