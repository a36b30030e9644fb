package bench

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// The layout of SQLite's write-ahead log: a header, then frames of a header and
// a page each.
const (
	walHeader   = 32
	frameHeader = 24
)

// wal follows the write-ahead log of a SQLite database that others write, and
// counts their transactions. It must look more often than the log is filled
// twice over.
type wal struct {
	file       *os.File
	generation uint64 // the log's; it changes when the log is begun afresh
	page       int64
	at         int64 // of the next frame
	commits    int   // since the log was opened
}

// followWAL opens the log of a database; only what is committed from now on is
// counted.
func followWAL(db string) (*wal, error) {
	f, err := os.Open(db + "-wal")
	if err != nil {
		return nil, err
	}
	w := &wal{file: f}
	if _, err := w.count(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.commits = 0
	return w, nil
}

func (w *wal) close() error { return w.file.Close() }

// count returns how many transactions were committed.
func (w *wal) count() (int, error) {
	if err := w.frames(); err != nil {
		return 0, err
	}
	var header [walHeader]byte
	if _, err := w.file.ReadAt(header[:], 0); err != nil {
		return w.commits, unlessEOF(err) // it is empty
	}
	generation := binary.BigEndian.Uint64(header[16:])
	if generation == w.generation {
		return w.commits, nil
	}
	// What came to the end of the last generation meanwhile is still there.
	if err := w.frames(); err != nil {
		return 0, err
	}
	w.generation, w.page, w.at = generation, int64(binary.BigEndian.Uint32(header[8:])), walHeader
	return w.commits, w.frames()
}

// frames reads on to the end of the generation.
func (w *wal) frames() error {
	if w.at == 0 {
		return nil
	}
	var frame [frameHeader]byte
	for {
		if _, err := w.file.ReadAt(frame[:], w.at); err != nil {
			return unlessEOF(err)
		}
		if binary.BigEndian.Uint64(frame[8:]) != w.generation {
			return nil // left over from the generation before, or of the next
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // only a commit's last frame says the size
			w.commits++
		}
		w.at += frameHeader + w.page
	}
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
