package store

import (
	"cmp"
	"slices"
	"sync"

	"goclaw"
)

// transcriptBytes bounds the encoded events that Transcripts keeps decoded.
const transcriptBytes = 2 << 20

// Transcripts keeps what was read last of conversations: every turn reads its
// whole session, and all but the newest run is as it was at the turn before.
// Only ended runs are kept, which nothing changes any more but a cleanup that
// removes their records: nothing from the first such run on is kept, and no
// worker's session, which nobody reads again. It is safe for concurrent
// use; what it returns is shared and must not be changed. The zero value is
// empty.
type Transcripts struct {
	mu     sync.Mutex
	kept   map[goclaw.SessionKey]*transcript
	bytes  int
	recent []goclaw.SessionKey // least recently used first
}

// transcript holds all runs of a session from its last reset to the newest
// that is kept, without a gap. The logs are only ever appended to.
type transcript struct {
	reset int64
	logs  []goclaw.RunLog
	bytes int
}

// Reset is the last reset of a session as far as is known, 0 if nothing is.
func (t *Transcripts) Reset(key goclaw.SessionKey) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.kept[key]; k != nil {
		return k.reset
	}
	return 0
}

// Get returns what is kept of a session whose last reset is known, and from
// which ordinal on to read.
func (t *Transcripts) Get(key goclaw.SessionKey, reset int64) ([]goclaw.RunLog, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kept[key]
	if k == nil || k.reset != reset {
		t.drop(key)
		return nil, reset
	}
	t.touch(key)
	n := len(k.logs)
	return k.logs[:n:n], k.logs[n-1].Run.Ordinal
}

// Add keeps the ended runs at the beginning of logs, up to the first whose
// record may be removed. logs follow directly on the run with ordinal after;
// sizes are those of their events.
func (t *Transcripts) Add(key goclaw.SessionKey, reset, after int64, logs []goclaw.RunLog, sizes []int) {
	n := slices.IndexFunc(logs, func(l goclaw.RunLog) bool {
		return !l.Run.State.Ended() || l.Run.Cleanup == goclaw.CleanupDelete
	})
	if n < 0 {
		n = len(logs)
	}
	if n == 0 || key.IsWorker() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kept[key]
	switch {
	case k == nil && after == reset:
		k = &transcript{reset: reset}
		if t.kept == nil {
			t.kept = map[goclaw.SessionKey]*transcript{}
		}
		t.kept[key] = k
	case k == nil || k.reset != reset || k.logs[len(k.logs)-1].Run.Ordinal != after:
		return // another reader was faster
	}
	k.logs = append(k.logs, logs[:n]...)
	for _, size := range sizes[:n] {
		k.bytes += size
		t.bytes += size
	}
	t.touch(key)
	for t.bytes > transcriptBytes {
		t.drop(t.recent[0])
	}
}

func (t *Transcripts) touch(key goclaw.SessionKey) {
	t.recent = append(slices.DeleteFunc(t.recent, func(k goclaw.SessionKey) bool { return k == key }), key)
}

func (t *Transcripts) drop(key goclaw.SessionKey) {
	if k := t.kept[key]; k != nil {
		t.bytes -= k.bytes
		delete(t.kept, key)
		t.recent = slices.DeleteFunc(t.recent, func(k goclaw.SessionKey) bool { return k == key })
	}
}

// Before returns the logs of runs older than the run with ordinal before: those
// of kept, then fresh, which has no others.
func Before(kept, fresh []goclaw.RunLog, before int64) []goclaw.RunLog {
	older, _ := slices.BinarySearchFunc(kept, before, func(l goclaw.RunLog, n int64) int { return cmp.Compare(l.Run.Ordinal, n) })
	if older == 0 {
		return fresh
	}
	return append(kept[:older:older], fresh...)
}
