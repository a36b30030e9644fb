package engine

import "sync"

// bell wakes everyone who listens. The zero value is ready.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// listen returns a channel that is closed at the next ring.
func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
