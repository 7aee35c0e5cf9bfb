// Package memory says how much memory there is for this process, and what a process took.
package memory

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Has is the memory of the machine, or of the control group or $GOMEMLIMIT if that is less, in bytes; +Inf if unknown.
func Has() float64 {
	has := math.Inf(1)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		has = float64(limit)
	}
	if kB := AfterWord("/proc/meminfo", "MemTotal:"); kB > 0 {
		has = min(has, 1024*kB)
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if most := AfterWord(file, ""); most > 0 {
			has = min(has, most)
		}
	}
	return has
}

// Free is what of that is free, in bytes; +Inf where the system does not tell.
func Free() float64 {
	free := math.Inf(1)
	if kB := AfterWord("/proc/meminfo", "MemAvailable:"); kB > 0 {
		free = 1024 * kB
	}
	if most := AfterWord("/sys/fs/cgroup/memory.max", ""); most > 0 {
		free = min(free, most-AfterWord("/sys/fs/cgroup/memory.current", ""))
	}
	return free
}

// Peak is a process's peak memory in bytes, "self" for this one; 0 if unknown.
func Peak(pid string) float64 { return 1024 * AfterWord("/proc/"+pid+"/status", "VmHWM:") }

// AfterWord is the number after a word of a file, 0 if there is none.
func AfterWord(file, word string) float64 {
	text, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(text), word)
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	x, _ := strconv.ParseFloat(fields[0], 64)
	return x
}
