//go:build unix

package tool

import (
	"io/fs"
	"syscall"
)

// identify returns a file's identity and how many names it has.
func identify(info fs.FileInfo) (id fileID, links uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, 0, false
	}
	// The fields' types differ between systems.
	return fileID{dev: uint64(st.Dev), ino: uint64(st.Ino)}, uint64(st.Nlink), true
}
