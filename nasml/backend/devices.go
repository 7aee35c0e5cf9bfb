package backend

import (
	"fmt"
	"os"
	"sync"

	"github.com/gomlx/compute"
)

// OpenDevices returns a backend with n devices or more: the process's own one
// (Open) where it has as many, else, on a CPU, one of its own with n devices,
// which share the processor's cores and its memory. XLA's CPU plugin has four
// devices unless it is told another number when it is opened; each later call
// for the same n returns the same backend.
//
// It returns an error if there are fewer devices: a GPU cannot be divided, and
// the pure-Go backend has one.
func OpenDevices(n int) (compute.Backend, error) {
	b, err := Open()
	if err != nil || n <= b.NumDevices() {
		return b, err
	}
	more.Lock()
	defer more.Unlock()
	if wide := more.opened[n]; wide != nil {
		return wide, nil
	}
	wide, err := openHostDevices(b, pluginConfig(), n)
	if err != nil {
		return nil, fmt.Errorf("opening a backend with %d devices: %s", n, firstText(err.Error()))
	}
	if wide == nil {
		return nil, fmt.Errorf("%d devices are asked for, the backend %q has %d: take at most as many, or "+
			"XLA on a CPU ($%s=xla:cpu), which has any number",
			n, b.Name(), b.NumDevices(), compute.ConfigEnvVar)
	}
	more.opened[n] = wide
	return wide, nil
}

// Opener returns a function that opens n devices and describes them, see [OpenDevices] and [Describe].
func Opener(n int) func() (name, device string, err error) {
	return func() (name, device string, err error) {
		b, err := OpenDevices(n)
		if err != nil {
			return "", "", err
		}
		name, device = Describe(b)
		return name, device, nil
	}
}

// more are the backends that were opened for their number of devices.
var more = struct {
	sync.Mutex
	opened map[int]compute.Backend
}{opened: map[int]compute.Backend{}}

// pluginConfig is the configuration that Open goes by.
func pluginConfig() string {
	config := os.Getenv(compute.ConfigEnvVar)
	if config == "" {
		config = defaultConfig
	}
	return withPlugin(config)
}
