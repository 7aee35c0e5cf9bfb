package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/nasml/lab/nasml/internal/memory"
)

// A peer's memory limit: a share of the free memory when it starts, and while it works, so much must stay free.
const (
	peerShare = 0.5
	leftShare = 0.1
)

// freeMB is the memory that is free, +Inf where the system does not tell; a test has another.
var freeMB = func() float64 { return memory.Free() / 1e6 }

// outgrew begins the reason why a peer was stopped that took too much memory.
const outgrew = "it needs more memory than "

func tooLarge(reason string) bool { return strings.HasPrefix(reason, outgrew) }

// watch stops a peer that takes too much memory.
func (s *peer) watch() {
	free := freeMB()
	most, left := peerShare*free, leftShare*free
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if took := s.peakMB(); took > most || s.busy.Load() && freeMB() < left {
			reason := fmt.Sprintf("%sthe %.1f GB allowed here: stopped at %.1f GB", outgrew, most/1000,
				took/1000)
			s.outgrown.Store(&reason)
			_ = s.cmd.Process.Kill() // it may have ended
			return
		}
	}
}

// problemOf says why the script ended: for lack of memory, or its last line on stderr.
func (s *peer) problemOf(how string) string {
	if reason := s.outgrown.Load(); reason != nil {
		return *reason
	}
	lines := strings.Split(strings.TrimSpace(s.problem.String()), "\n")
	return fmt.Sprintf("the script ended (%s): %s", how, lines[len(lines)-1])
}

// smaller has half the batch, for the forms that could not run; false if it cannot be halved.
func (c DartsCase) smaller(forms []string) (DartsCase, bool) {
	if len(forms) == 0 || c.Batch < 2 {
		return c, false
	}
	c.Batch, c.Forms, c.halved = c.Batch/2, forms, true
	return c, true
}

func (c DartsCase) label() string {
	if !c.halved {
		return c.Name
	}
	return fmt.Sprintf("%s, batch %d", c.Name, c.Batch)
}
