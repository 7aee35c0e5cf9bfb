package lab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// counted notes units that are skipped and done.
type counted struct {
	runs.Progress
	skipped, done int
}

func (c *counted) Skip(units int)           { c.skipped += units }
func (c *counted) Step(units int, _ string) { c.done += units }

// A search that goes on from epoch 2 of 4 has a half of its units to count, but for the step that it has just made.
func TestPaceCountsEveryUnitOnce(t *testing.T) {
	c := &counted{Progress: runs.Silent}
	p := Pace{Progress: c, Units: 40}
	p.At(2, 4, 1, 5, "")
	require.Equal(t, 20, c.skipped)
	require.Equal(t, 2, c.done)
	p.At(1, 4, 0, 5, "earlier")
	require.Equal(t, 2, c.done)
	p.At(3, 4, 0, 5, "")
	require.Equal(t, 10, c.done)
	p.End("")
	require.Equal(t, 40, c.skipped+c.done)
}
