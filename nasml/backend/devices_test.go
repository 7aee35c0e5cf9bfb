//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"
)

// openCPU opens XLA on a CPU as Open does, whatever the process has opened
// before.
func openCPU(t *testing.T) compute.Backend {
	b, err := openWith(withPlugin("xla:cpu"))
	if err != nil {
		t.Skipf("no XLA: %v", err)
	}
	t.Cleanup(b.Finalize)
	return b
}

func TestTheCPUPluginHasAsManyDevicesAsAreAskedFor(t *testing.T) {
	b := openCPU(t)
	for _, n := range []int{1, 6} {
		wide, err := openHostDevices(b, withPlugin("xla:cpu"), n)
		require.NoError(t, err)
		require.Equal(t, n, wide.NumDevices())
		_, device := Describe(wide)
		_, same := Describe(b)
		require.Equal(t, same, device, "a record says what computed, not on how many")
		wide.Finalize()
	}
}
