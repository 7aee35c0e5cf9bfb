package notebook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021"
	"github.com/nasml/lab/nasml/oymak2021"
	"github.com/nasml/lab/plots"
)

func TestPresetFollowsTheScale(t *testing.T) {
	for scale, want := range map[string]int{"": 1, "quick": 1, "paper": 2} {
		t.Setenv(ScaleEnv, scale)
		require.Equal(t, want, Preset(1, 2))
	}
}

// A wrong scale ends the cell, which is a process, with one line and a status
// that Jupyter shows as an error.
func TestWrongScaleEndsTheCell(t *testing.T) {
	if os.Getenv(ScaleEnv) == "large" {
		Preset(1, 2)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestWrongScaleEndsTheCell")
	cmd.Env = append(os.Environ(), ScaleEnv+"=large")
	out, err := cmd.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1")
	require.Equal(t, "$NASML_SCALE is \"large\": set it to quick or paper for a notebook; large is for run, "+
		"where a figure has it\n", string(out))
}

// Stop ends a cell whose step does not look at it, as while compiling, with a
// word on what is left, before GoNB would kill it without one.
func TestStopWithinAStepThatDoesNotEnd(t *testing.T) {
	if os.Getenv("NASML_TEST_STOP") != "" {
		Run(func(context.Context, int) (catalog.Result, error) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			select {}
		}, 0)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestStopWithinAStepThatDoesNotEnd")
	cmd.Env = append(os.Environ(), "NASML_TEST_STOP=1")
	out, err := cmd.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1")
	require.Contains(t, string(out), "stopped within a step that cannot be interrupted")
}

// The records of a result are found whether they are shipped or were computed, and whatever the form of its entry.
func TestRecordsOfAnyResult(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	r := Run(oymak2021.Lemma1, oymak2021.Lemma1Paper) // shipped
	keys := r.Records()
	require.NotEmpty(t, keys)
	d := Records(r)
	require.Len(t, d.Records, len(keys))
	require.Contains(t, d.Trials()[0], "world.inputs")
	require.Equal(t, "excess", Records(hidden{r}).Numbers()[6][2], "of a result without Data")
}

// hidden is a result that says no more than it must.
type hidden struct{ catalog.Result }

func TestStandInOnlyWhereAskedFor(t *testing.T) {
	t.Setenv(DataEnv, "")
	require.Equal(t, data.MNIST, Data(data.MNIST))
	t.Setenv(DataEnv, "synthetic")
	require.Equal(t, data.Synthetic, Data(data.MNIST))
}

func TestDataThatAreNotHereHaveAStandIn(t *testing.T) {
	t.Setenv(DataEnv, "")
	t.Setenv("NASML_DATA", t.TempDir())
	of, missing := here(data.CIFAR10)
	require.Equal(t, data.Synthetic, of)
	require.Equal(t, "cifar-10 is not on this machine: synthetic images take its place. `go tool nasml data cifar-10` "+
		"in a terminal downloads it.", missing)
	of, missing = here(data.Synthetic)
	require.Equal(t, data.Synthetic, of)
	require.Empty(t, missing)
}

// An error of a cell says what may have been meant, and what runs without a publisher's data.
func TestErrorsSayWhatToDo(t *testing.T) {
	require.Contains(t, said(fmt.Errorf("cifar-10: %w", data.ErrMissing)), "data.Synthetic")
	require.NotContains(t, said(data.ErrBroken), "data.Synthetic")
	require.Regexp(t, "[^:]: type `p.ArchRate = 0.01`$", said(errors.New(
		`θ of … is NaN: its update "mine" gave that; lower its rate (now 0.1) or LearningRate (now 0.025)`)))
	require.Regexp(t, "[^:]: type `p.LearningRate = 0.0025`$", said(errors.New(
		"the training loss is +Inf: the weights have diverged; lower LearningRate (now 0.025), with which …")))
	p := li2021.Figure1Quick
	p.Update, p.StoredOnly = "egg", true
	_, err := li2021.Figure1(t.Context(), p)
	require.Regexp(t, `unknown update "egg": .*; did you mean eg\?$`, said(err))
	p = li2021.Figure1Quick
	p.Data = "cifar10"
	_, err = li2021.Figure1(t.Context(), p)
	require.Regexp(t, `Data must be .*, got "cifar10"; did you mean cifar-10\?$`, said(err))
	p = li2021.Figure1Quick
	p.Space = "nasbench-20"
	_, err = li2021.Figure1(t.Context(), p)
	require.Regexp(t, `"nasbench-20".*; did you mean nasbench201\?$`, said(err))
}

func TestExportTakesStylesAndFormats(t *testing.T) {
	how, err := exportOf([]any{"pdf", plots.Export{NoReferences: true}, "tex", plots.CVPR.Column()})
	require.NoError(t, err)
	require.Equal(t, plots.Export{
		Formats: []string{"pdf", "tex"}, Style: plots.CVPR.Column(), NoReferences: true,
	}, how)
	how, err = exportOf([]any{"width=3in"})
	require.NoError(t, err)
	require.Equal(t, 3.0, how.Style.Width)
	_, err = exportOf([]any{"pfd"})
	require.ErrorContains(t, err, `expected one of aaai`)
	require.ErrorContains(t, err, `or one of the formats ["eps" "pdf"`)
	_, err = exportOf([]any{3})
	require.ErrorContains(t, err, `3 is a int: expected a format such as "pdf", a plots.Style or a plots.Export`)
}
