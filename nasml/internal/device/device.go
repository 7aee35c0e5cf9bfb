// Package device calls steps whose state stays on devices.
package device

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Step calls exec on inputs and a donated state, which the device may overwrite. The outputs after the new state are
// the report.
func Step(
	b compute.Backend, exec *Exec, inputs []any, state []*tensors.Tensor,
) (next, report []*tensors.Tensor, err error) {
	states := [][]*tensors.Tensor{state}
	report, err = Steps(b, exec, [][]any{inputs}, states)
	return states[0], report, err
}

// Steps is [Step] on several devices, each with its own inputs and state, which it replaces. All give the same report.
func Steps(
	b compute.Backend, exec *Exec, inputs [][]any, states [][]*tensors.Tensor,
) (report []*tensors.Tensor, err error) {
	var args []any
	for d, state := range states {
		args = append(args, inputs[d]...)
		for _, t := range state {
			donated, err := DonateTensorBuffer(t, b, compute.DeviceNum(d))
			if err != nil {
				return nil, fmt.Errorf("donating the state of device %d: %w", d, err)
			}
			args = append(args, donated)
		}
	}
	out, err := exec.Call(args...)
	if err != nil {
		return nil, err
	}
	each, n := len(out)/len(states), len(states[0])
	for d := range states {
		own := out[d*each : (d+1)*each]
		states[d] = own[:n:n]
		if d == 0 {
			report = own[n:]
		} else if err := Free(own[n:]...); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// Float64s reads tensors, one after the other, and frees them.
func Float64s(all ...*tensors.Tensor) ([]float64, error) {
	var out []float64
	for _, t := range all {
		values, err := Values(t)
		if err != nil {
			return nil, err
		}
		out = append(out, values...)
	}
	return out, Free(all...)
}

// Values are the numbers of a float32 or float64 tensor.
func Values(t *tensors.Tensor) ([]float64, error) {
	if t.DType() == dtypes.Float64 {
		return tensors.CopyFlatData[float64](t)
	}
	single, err := tensors.CopyFlatData[float32](t)
	values := make([]float64, len(single))
	for i, x := range single {
		values[i] = float64(x)
	}
	return values, err
}

// Free frees tensors.
func Free(all ...*tensors.Tensor) error {
	for _, t := range all {
		if err := t.FinalizeAll(); err != nil {
			return err
		}
	}
	return nil
}
