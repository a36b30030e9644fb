package bench

import (
	"context"
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

// syncTime is what one fsync takes here, measured when it is first asked for.
func (b *bench) syncTime(ctx context.Context) (time.Duration, error) {
	if b.fsync == 0 {
		if _, err := b.disk(ctx); err != nil {
			return 0, err
		}
	}
	return b.fsync, nil
}
