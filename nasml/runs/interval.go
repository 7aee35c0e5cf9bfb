package runs

import (
	"os"
	"time"
)

// IntervalEnv is a time such as 20ms that takes the place of those between two checkpoints.
const IntervalEnv = "NASML_CHECKPOINT"

// Interval is the time between two checkpoints: the usual one, or what $NASML_CHECKPOINT says.
func Interval(usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(IntervalEnv)); err == nil && d >= 0 {
		return d
	}
	return usual
}
