package bench

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withFree says how much memory is free, in MB.
func withFree(t *testing.T, mb float64) {
	before := freeMB
	t.Cleanup(func() { freeMB = before })
	freeMB = func() float64 { return mb }
}

// greedy is a line of shell that takes 30 MB and waits for its end.
const greedy = "exec 2> /dev/null; x=$(head -c 30000000 /dev/zero | tr '\\0' a); cat > /dev/null; "

// A peer that takes too much memory is ended and tried with a smaller batch, which is
// named; the others' figures and ours are there.
func TestPeersThatOutgrowTheMachineGetASmallerCase(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not tell what a process takes")
	}
	withFree(t, 40)
	p := tinyDarts()
	p.Compared = []DartsCase{{
		Name: "DARTS", Partial: 1, Cells: 1, Channels: 2, Image: 4, Batch: 4, Steps: 1, Double: true,
	}}
	p.Python = fakePython(t, `if [ "$4" = stock ]; then `+greedy+`exec sleep 20; else echo no module >&2; exit 1; fi`)
	var found []*DartsResult
	keep := func(r *DartsResult) error { found = append(found, r); return nil }
	require.NoError(t, Darts(t.Context(), goBackend(t), p, keep))

	var tried []string
	for _, a := range found[0].Agree {
		if a.Form == "stock" {
			require.Contains(t, a.NotRun, "it needs more memory than the 0.0 GB allowed here")
			tried = append(tried, a.Case)
		} else {
			require.Contains(t, a.NotRun, "no module", "its own failure")
		}
	}
	require.Equal(t, []string{"DARTS", "DARTS, batch 2", "DARTS, batch 1"}, tried)
	require.Len(t, found[0].Agree, 4+2, "the others are not tried again")

	require.Len(t, found, 2, "batch 2, batch 1")
	require.Equal(t, []int{2, 1}, []int{found[0].Batch, found[1].Batch})
	require.Len(t, found[0].Entries, 5)
	require.Len(t, found[1].Entries, 2, "ours and the one that did not fit")
	for _, r := range found {
		require.Len(t, r.Entries[0].Seconds, p.Rounds, "ours is timed all the same")
		require.True(t, tooLarge(r.Entries[1].NotRun), r.Entries[1].NotRun)
	}
	var table strings.Builder
	require.NoError(t, found[1].WriteTable(&table))
	require.Contains(t, table.String(), "batch 1")
}
