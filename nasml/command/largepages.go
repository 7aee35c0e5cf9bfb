package command

import (
	"os"
	"strings"
	"syscall"
)

// XLA allocates a step's memory, often gigabytes, at every call. With pages of 4 kB that takes a sixth of the step's
// time. These options of the C library (glibc 2.35) ask for large pages, and keep freed memory for the next step. It
// reads them when a program starts.
const (
	tunables   = "GLIBC_TUNABLES"
	largePages = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:" +
		"glibc.malloc.arena_max=1"
	largePagesFile = "/sys/kernel/mm/transparent_hugepage/enabled"
)

// withLargePages adds the option to an environment; ok reports whether it was useful and missing.
func withLargePages(env []string, state string) (_ []string, ok bool) {
	if !strings.Contains(state, "[madvise]") {
		return env, false
	}
	for _, e := range env {
		if strings.HasPrefix(e, tunables+"=") {
			return env, false
		}
	}
	return append(env, tunables+"="+largePages), true
}

// askForLargePages restarts this program in this process with the option, if it can.
func askForLargePages() {
	state, _ := os.ReadFile(largePagesFile) // on Linux only
	env, ok := withLargePages(os.Environ(), string(state))
	self, err := os.Executable()
	if ok && err == nil {
		_ = syscall.Exec(self, os.Args, env)
	}
}
