package training

import (
	"math"
	"runtime"
	"time"

	"github.com/nasml/lab/nasml/supernet"
)

// secondsPerProduct is the time of one core for a multiply-add of an example's
// forward pass when it is trained, s: a network's maps cost as much again as its
// products, so that it is far from what a processor can multiply. It was measured
// on steps of the quick and of the paper's size (see BenchmarkTraining).
const secondsPerProduct = 1.1e-8

// Forecast is about how long one training on so many examples takes on this
// machine's processors, good to a factor of two or three, 0 where there is no
// such network. It says nothing about a GPU.
func (s Settings) Forecast(g supernet.Genotype, train, test int) time.Duration {
	net, err := s.Network(g, 10)
	if err != nil {
		return 0
	}
	tests := 1
	if s.EvaluateEvery > 0 {
		tests += (s.Epochs - 1) / s.EvaluateEvery
	}
	passes := float64(s.Epochs)*float64(train) + float64(tests)*float64(test)/3
	seconds := passes * float64(net.MultiplyAdds()) * secondsPerProduct / math.Pow(float64(runtime.NumCPU()), 0.85)
	return time.Duration(seconds * float64(time.Second))
}
