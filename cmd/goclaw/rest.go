package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	restEvery = time.Second
	// restWorth is how much must have been allocated since the last rest to
	// make another one worth its collection.
	restWorth = 4 << 20
	// rests in a row: each collection halves the stacks that have become too
	// large for what they hold, which waiting workers' mostly are.
	rests = 3
	// gcPercent lets the small heap of a gateway grow threefold between
	// collections, not twofold: they were a fifth of what a turn costs. A heap
	// beyond smallHeap, with some hundred runs under way, costs more memory so
	// than it saves work, and one beyond largeHeap more work.
	gcPercent, tight, goDefault = 200, 60, 100
	smallHeap, largeHeap        = 8 << 20, 64 << 20
)

// rest gives memory back to the system once the process has become quiet. By
// itself the runtime collects only when the heap has doubled, and keeps what a
// burst of work took for minutes: a gateway is idle most of its life.
func rest(ctx context.Context) {
	given := debug.SetGCPercent(gcPercent)
	defer debug.SetGCPercent(given)
	if given != goDefault {
		debug.SetGCPercent(given) // GOGC is the person's to set
	}
	percent := gcPercent
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	seen := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	var rested, before uint64
	left := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(seen)
		if want := percentFor(seen[1].Value.Uint64()); given == goDefault && want != percent {
			percent = want
			debug.SetGCPercent(percent)
		}
		now := seen[0].Value.Uint64()
		if now-rested >= restWorth {
			left = rests
		}
		if left > 0 && now-before < restWorth/4 {
			debug.FreeOSMemory()
			rested = now
			left--
		}
		before = now
	}
}

// percentFor is the GC percentage for a heap with so many live bytes.
func percentFor(live uint64) int {
	switch {
	case live > largeHeap:
		return goDefault
	case live > smallHeap:
		return tight
	}
	return gcPercent
}
