package notebook

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
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
	require.Equal(t, "$NASML_SCALE is \"large\": set it to quick or paper\n", string(out))
}

func TestStandInOnlyWhereAskedFor(t *testing.T) {
	t.Setenv(DataEnv, "")
	require.Equal(t, data.MNIST, Data(data.MNIST))
	t.Setenv(DataEnv, "synthetic")
	require.Equal(t, data.Synthetic, Data(data.MNIST))
}
