//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"
)

func TestTheCPUPluginHasAsManyDevicesAsAreAskedFor(t *testing.T) {
	t.Setenv(compute.ConfigEnvVar, "xla:cpu")
	b, err := compute.NewWithConfig(pluginConfig())
	if err != nil {
		t.Skipf("no XLA: %v", err)
	}
	defer b.Finalize()
	for _, n := range []int{1, 6} {
		wide, err := openHostDevices(b, pluginConfig(), n)
		require.NoError(t, err)
		require.Equal(t, n, wide.NumDevices())
		_, device := Describe(wide)
		_, same := Describe(b)
		require.Equal(t, same, device, "a record says what computed, not on how many")
		wide.Finalize()
	}
}
