package training

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/supernet"
)

// BenchmarkTraining is a step of the quick setting of the genotype of Li+ 2021.
func BenchmarkTraining(b *testing.B) {
	s := AsQuick["cifar-10"]
	s.Epochs, s.EvaluateEvery = 1, 0
	engine, err := backend.Open()
	require.NoError(b, err)
	t := new(testing.T)
	all := pictures(t, 2*s.Batch, s.Image)
	for range b.N {
		train, test, err := s.InMemory(all, all)
		require.NoError(b, err)
		x, err := New(engine, s, supernet.Published["GAEA_PC_DARTS_cifar"].Genotype, train, test)
		require.NoError(b, err)
		begin := time.Now()
		steps := 0
		_, err = x.Train(b.Context(), 0, Options{Observe: func(m Snapshot) {
			if steps++; steps == 1 {
				b.ReportMetric(time.Since(begin).Seconds(), "s/first")
				begin = time.Now()
			} else if steps == 2 {
				b.ReportMetric(time.Since(begin).Seconds(), "s/step")
			}
		}})
		require.NoError(b, err)
		x.Close()
	}
}
