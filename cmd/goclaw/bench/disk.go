package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// disk measures what a durable write costs at least.
func (b *bench) disk(context.Context) (_ []Figure, err error) {
	f, err := os.Create(filepath.Join(b.dir, "fsync"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var took sample
	page := make([]byte, 4096)
	for range b.size.syncs {
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	b.fsync = took.median()
	return []Figure{{
		ID: "fsync", Name: "Disk: one fsync", Values: took.tail(),
		Means: "The least that one durable commit can cost here. Every commit below waits for one such call; commits that several runs ask for at once share it.",
		How:   "4 KB appended to a file in the folder that the measured homes lie in, then fsync; only the fsync is timed.",
	}}, nil
}

// walCommits counts the transactions in a SQLite write-ahead log. generation
// changes when the log is begun afresh; counts of two generations can't be
// compared.
func walCommits(db string) (commits int, generation uint64, err error) {
	raw, err := os.ReadFile(db + "-wal")
	if err != nil || len(raw) < 32 {
		return 0, 0, err
	}
	page := int(binary.BigEndian.Uint32(raw[8:]))
	generation = binary.BigEndian.Uint64(raw[16:])
	const header = 24
	for at := 32; at+header+page <= len(raw); at += header + page {
		frame := raw[at:]
		if binary.BigEndian.Uint64(frame[8:]) != generation {
			break // left over from the generation before
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // only a commit's last frame says the size
			commits++
		}
	}
	return commits, generation, nil
}
