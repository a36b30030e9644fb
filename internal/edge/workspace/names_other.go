//go:build !unix

package workspace

import "io/fs"

// onlyName reports whether a file has one name only; known is false where that
// can't be told.
func onlyName(fs.FileInfo) (only, known bool) { return false, false }

// inode can't be told here.
func inode(fs.FileInfo) string { return "" }
