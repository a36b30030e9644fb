package file

import (
	"container/list"
	"crypto/sha256"
	"hash/maphash"
	"sync"
)

// maxSeen bounds the ledger. An entry is a path and a hash: some 200 bytes.
const maxSeen = 8192

// digest identifies a file's content.
type digest = [sha256.Size]byte

// ledger remembers which content of which file each session has seen. It
// forgets the longest unused entries. It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	max   int
	items map[seenKey]*list.Element
	order *list.List // of seenItem, most recent first

	seed  maphash.Seed
	locks [64]sync.Mutex // by file, so that calls don't change one file at once
}

type seenKey struct{ session, path string }

type seenItem struct {
	key seenKey
	sum digest
}

func newLedger(limit int) *ledger {
	return &ledger{max: limit, items: map[seenKey]*list.Element{}, order: list.New(), seed: maphash.MakeSeed()}
}

// lock keeps other calls from changing the file until unlock is called.
func (l *ledger) lock(path string) (unlock func()) {
	m := &l.locks[maphash.String(l.seed, path)%uint64(len(l.locks))]
	m.Lock()
	return m.Unlock
}

// note records what session has seen of the file at path.
func (l *ledger) note(session, path string, sum digest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := seenKey{session, path}
	if e, ok := l.items[k]; ok {
		e.Value = seenItem{k, sum}
		l.order.MoveToFront(e)
		return
	}
	l.items[k] = l.order.PushFront(seenItem{k, sum})
	if l.order.Len() > l.max {
		last := l.order.Back()
		delete(l.items, last.Value.(seenItem).key)
		l.order.Remove(last)
	}
}

// last returns what session saw last of the file at path.
func (l *ledger) last(session, path string) (digest, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.items[seenKey{session, path}]
	if !ok {
		return digest{}, false
	}
	l.order.MoveToFront(e)
	return e.Value.(seenItem).sum, true
}
