//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// ownerOf is the number of the user whose a file is.
func ownerOf(info fs.FileInfo) (number int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
