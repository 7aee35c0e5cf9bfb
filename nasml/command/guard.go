package command

import (
	"context"
	_ "embed"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

//go:embed guard.py
var guard string

// guarded is a Python program that leaves nothing behind, however it or this process ends: neither processes, such as
// kernels in sessions of their own, nor temporary folders. It is in a session of its own, where neither a terminal's
// Ctrl-C nor its end reaches it: it gets SIGTERM when the context ends, and some seconds to stop cleanly.
func (s *site) guarded(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.python("venv"), append([]string{"-c", guard}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	return cmd
}

// runGuarded runs it. The pipe that is its stdin closes when this process ends, even by SIGKILL, which ends it.
func runGuarded(cmd *exec.Cmd) (err error) {
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, alive.Close())
	}
	return cmd.Wait() // which closes alive
}
