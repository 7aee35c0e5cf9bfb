package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var _ = os.Stat
var _ = filepath.Join
var _ = strings.Join

// BenchmarkDarts reports the time of a bilevel step, and of its first call.
func BenchmarkDarts(b *testing.B) {
	for _, c := range []DartsCase{dartsQuickSize, dartsPaperSize, dartsPartial, dartsTraining} {
		b.Run(strings.ReplaceAll(c.String(), " ", "-"), func(b *testing.B) {
			w, err := newDartsWork(c, 0)
			require.NoError(b, err)
			run, err := newDartsRun(testBackend(b), w, false)
			require.NoError(b, err)
			defer run.exec.Finalize()
			first, err := run.losses(b.Context())
			require.NoError(b, err)
			resetPeak()
			seconds := 0.0
			for b.Loop() {
				again, err := run.losses(b.Context())
				require.NoError(b, err)
				require.Equal(b, first.Losses, again.Losses)
				seconds += again.Seconds
			}
			b.ReportMetric(seconds*1000/float64(b.N*c.Steps), "ms/step")
			b.ReportMetric(first.Seconds, "s-first")
			b.ReportMetric(peakMB("self"), "MB")
		})
	}
}
