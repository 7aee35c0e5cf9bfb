package runs_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

// A trial is computed once and read from then on, by any process.
func ExampleStore_Compute() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := runs.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	trials := []runs.Trial{{Figure: "me/figure1", Params: map[string]int{"width": 64}, Seed: 3, Code: "v1"}}
	ctx := runs.WithProgress(context.Background(), runs.Silent)
	for range 2 {
		records, err := store.Compute(ctx, trials, runs.Options{}, func(_ context.Context, job *runs.Job) error {
			fmt.Println("computing")
			draw := trial.RNG(job.Trials[0].Seed, "noise").IntN(100)
			return job.Done(0, trial.Result{Values: map[string]float64{"loss": float64(draw)}})
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(records[0].Values["loss"])
	}
	// Output:
	// computing
	// 83
	// 83
}
