// Package device calls steps whose state stays on devices.
package device

import (
	"fmt"

	"github.com/gomlx/compute"
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

// Float64s reads float32 tensors, one after the other, and frees them.
func Float64s(all ...*tensors.Tensor) ([]float64, error) {
	var out []float64
	for _, t := range all {
		single, err := tensors.CopyFlatData[float32](t)
		if err != nil {
			return nil, err
		}
		for _, v := range single {
			out = append(out, float64(v))
		}
	}
	return out, Free(all...)
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
