package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// errClosed answers every call after Close.
var errClosed = errors.New("store is closed")

// explain turns SQLite's result codes into what happened, where, and what to
// do about it. Other errors pass unchanged.
func (s *Store) explain(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	var what string
	switch e.Code() & 0xff {
	case codes.SQLITE_NOTADB:
		what = "%s is not a SQLite database; it was left as it is: move it away or use another path"
	case codes.SQLITE_CORRUPT:
		what = "%s is damaged; restore a backup, or move it away to start afresh"
	case codes.SQLITE_FULL:
		what = "the disk that holds %s is full; nothing was written: free some space and try again"
	case codes.SQLITE_READONLY, codes.SQLITE_PERM:
		what = "%s cannot be written; check the permissions of the file and of its folder"
	case codes.SQLITE_CANTOPEN:
		what = "%s cannot be opened; check that it is a file that this user may read and write"
	case codes.SQLITE_IOERR:
		what = "%s cannot be read or written: the disk or its file system reports an error"
	case codes.SQLITE_BUSY:
		what = "%s is locked by another process; try again when it has finished"
	default:
		return err
	}
	return fmt.Errorf(what+": %w", s.path, err)
}
