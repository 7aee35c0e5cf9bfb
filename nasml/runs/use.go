package runs

import (
	"sync"
	"syscall"
	"time"

	"github.com/nasml/lab/nasml/internal/memory"
)

// Use is what a computation took of a process that did nothing else.
type Use struct {
	Processor float64 `json:"processor,omitempty"` // seconds of all its processors; 0: not known
	Peak      float64 `json:"peak,omitempty"`      // most memory of the process at once, bytes; 0: not known
}

// then is what two parts took, one after the other. Parts of an unknown time have one.
func (u Use) then(next Use) Use {
	sum := Use{u.Processor + next.Processor, max(u.Peak, next.Peak)}
	if u.Processor == 0 || next.Processor == 0 {
		sum.Processor = 0
	}
	return sum
}

// processUse is what this process has taken since its start, 0 where the system does not tell.
var processUse = func() Use {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return Use{
		Processor: time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(),
		Peak:      memory.Peak("self"),
	}
}

var jobs struct {
	sync.Mutex
	now, begun int // under way, and all that ever began
}

type watch struct {
	from  Use
	nth   int  // job of the process
	alone bool // when it began
}

func startWatch() watch {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.now++
	jobs.begun++
	return watch{processUse(), jobs.begun, jobs.now == 1}
}

func (w watch) end() {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.now--
}

// use is what was taken since the start; nothing is known where another job ran beside
// it, and nothing of the peak where that was reached before.
func (w watch) use() Use {
	jobs.Lock()
	defer jobs.Unlock()
	if !w.alone || jobs.begun != w.nth {
		return Use{}
	}
	now := processUse()
	if now.Peak <= w.from.Peak {
		now.Peak = 0
	}
	return Use{now.Processor - w.from.Processor, now.Peak}
}
