package supernet_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // small graphs need no XLA
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/supernet"
)

// A mixture of two activation functions, one of them the reader's own.
func ExampleMixActivations() {
	backend, err := compute.NewWithConfig("go")
	if err != nil {
		fmt.Println(err)
		return
	}
	supernet.Activations["cube"] = func(z *Node) *Node { return Mul(z, Square(z)) }
	defer delete(supernet.Activations, "cube")
	h := MustExecOnce(backend, func(alpha, z *Node) *Node {
		return supernet.MixActivations("relu", "cube", alpha, z) // 0.75·relu + 0.25·cube
	}, []float64{0.25}, []float64{-2, 0, 2})
	fmt.Println(h.Value())
	// Output: [-2 0 3.5]
}

// An architecture of NAS-Bench-201 as the benchmark prints it.
func ExampleSpace_Arch() {
	space := supernet.NASBench201
	theta := space.OneHot([]int{3, 1, 3, 0, 2, 4})
	arch := space.Arch(space.Argmax(theta))
	fmt.Println(arch)
	back, err := space.Parse(arch)
	fmt.Println(back, err)
	// Output:
	// |nor_conv_3x3~0|+|skip_connect~0|nor_conv_3x3~1|+|none~0|nor_conv_1x1~1|avg_pool_3x3~2|
	// [3 1 3 0 2 4] <nil>
}
