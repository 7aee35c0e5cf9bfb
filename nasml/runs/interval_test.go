package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": time.Minute, "20ms": 20 * time.Millisecond, "0s": 0, "-1s": time.Minute, "soon": time.Minute,
	} {
		t.Setenv(IntervalEnv, text)
		require.Equal(t, want, Interval(time.Minute), text)
	}
}
