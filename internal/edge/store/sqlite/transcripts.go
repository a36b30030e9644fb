package sqlite

import (
	"slices"
	"sync"

	"goclaw"
)

// transcriptBytes bounds the encoded events that transcripts keeps decoded.
const transcriptBytes = 2 << 20

// transcripts keeps what was read last of conversations: every turn reads its
// whole session, and all but the newest run is as it was at the turn before.
// Only ended runs are kept, which nothing changes any more but a cleanup that
// removes their records: nothing from the first such run on is kept, and no
// worker's session, which nobody reads again. It is safe for concurrent
// use; what it returns is shared and must not be changed.
type transcripts struct {
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

// get returns what is kept of a session whose last reset is known, and from
// which ordinal on to read.
func (t *transcripts) get(key goclaw.SessionKey, reset int64) ([]goclaw.RunLog, int64) {
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

// add keeps the ended runs at the beginning of logs, up to the first whose
// record may be removed. logs follow directly on the run with ordinal after;
// sizes are those of their events.
func (t *transcripts) add(key goclaw.SessionKey, reset, after int64, logs []goclaw.RunLog, sizes []int) {
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

func (t *transcripts) touch(key goclaw.SessionKey) {
	t.recent = append(slices.DeleteFunc(t.recent, func(k goclaw.SessionKey) bool { return k == key }), key)
}

func (t *transcripts) drop(key goclaw.SessionKey) {
	if k := t.kept[key]; k != nil {
		t.bytes -= k.bytes
		delete(t.kept, key)
		t.recent = slices.DeleteFunc(t.recent, func(k goclaw.SessionKey) bool { return k == key })
	}
}
