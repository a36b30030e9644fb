//go:build unix

package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// onlyName reports whether a file has one name only; known is false where that
// can't be told.
func onlyName(info fs.FileInfo) (only, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1, ok
}

// inode tells files apart that follow one another under one name.
func inode(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Ino)
}
