package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// held is a store whose first commit waits until release.
func held(t *testing.T) (s *sqlite.Store, release func()) {
	gate := make(chan struct{})
	first := true
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{Hook: func(point string) {
		if point == "commit.before" && first {
			first = false
			<-gate
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() { close(gate) }
}

// TestGroupCommit lets writes pile up behind a commit: they share the next
// one, and one that fails takes only itself back.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := held(t)
		const n = 20
		errs := make([]error, n)
		for i := range n {
			id := fmt.Sprintf("r%02d", i)
			if i == n-1 {
				id = "r00"
			}
			go func() { _, _, errs[i] = s.Accept(t.Context(), turn(id)) }()
			synctest.Wait() // the first has the commit to itself, the others queue up in order
		}
		release()
		synctest.Wait()
		for i, err := range errs {
			if (err != nil) != (i == n-1) {
				t.Errorf("write %d: error %v", i, err)
			}
		}
		if got := s.Commits(); got != 2 {
			t.Errorf("%d commits for %d writes, want 2", got, n)
		}
		runs, err := s.Runs(t.Context(), goclaw.RunFilter{})
		if err != nil || len(runs) != n-1 {
			t.Errorf("%d runs, error %v; want %d", len(runs), err, n-1)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWriteContext ends the contexts of a write that has started and of one
// that has not.
func TestWriteContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := held(t)
		ctx, cancel := context.WithCancel(t.Context())
		started, queued := errors.New("no answer"), errors.New("no answer")
		go func() { _, _, started = s.Accept(ctx, turn("started")) }()
		synctest.Wait()
		go func() { _, _, queued = s.Accept(ctx, turn("queued")) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(queued, context.Canceled) {
			t.Errorf("the queued write: %v", queued)
		}
		if started == nil || errors.Is(started, context.Canceled) {
			t.Errorf("the started write was answered before its commit: %v", started)
		}
		release()
		synctest.Wait()
		if started != nil {
			t.Errorf("the started write: %v", started)
		}
		if _, err := s.Run(t.Context(), "started"); err != nil {
			t.Error(err)
		}
		if _, err := s.Run(t.Context(), "queued"); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("the withdrawn write: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestClose answers what has started and refuses what has not.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := held(t)
		started, queued, closed := errors.New("no answer"), errors.New("no answer"), errors.New("no answer")
		go func() { _, _, started = s.Accept(t.Context(), turn("started")) }()
		synctest.Wait()
		go func() { _, _, queued = s.Accept(t.Context(), turn("queued")) }()
		go func() { closed = s.Close() }()
		synctest.Wait()
		if queued == nil || !strings.Contains(queued.Error(), "closed") {
			t.Errorf("the queued write: %v", queued)
		}
		release()
		synctest.Wait()
		if started != nil || closed != nil {
			t.Errorf("the started write: %v; Close: %v", started, closed)
		}
	})
}

func TestNothingWritten(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{})
	ctx := t.Context()
	keyed := turn("r1")
	keyed.Key = "k"
	if _, _, err := s.Accept(ctx, keyed); err != nil {
		t.Fatal(err)
	}
	claim := goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: 1e9, Max: 9}
	if _, err := s.Claim(ctx, claim); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(ctx, goclaw.Cancellation{Run: "r1", Now: 1}); err != nil {
		t.Fatal(err)
	}
	if got := s.Commits(); got != 3 {
		t.Fatalf("%d commits of 3 writes", got)
	}
	idle := map[string]func() error{
		"a claim of nothing": func() error { _, err := s.Claim(ctx, claim); return err },
		"a known key":        func() error { _, _, err := s.Accept(ctx, keyed); return err },
		"a second cancel": func() error {
			_, err := s.Cancel(ctx, goclaw.Cancellation{Run: "r1", Now: 1})
			return err
		},
		"nothing to tidy":    func() error { _, err := s.Tidy(ctx, 1, 1); return err },
		"nothing to release": func() error { return s.Release(ctx, "nobody", 1) },
		"an empty batch":     func() error { return s.Append(ctx, goclaw.Fence{Run: "r1", Epoch: 1, Owner: "o"}, goclaw.Batch{}) },
	}
	for what, f := range idle {
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := s.Commits(); got != 3 {
			t.Fatalf("%s was committed", what)
		}
	}
	stale := goclaw.Fence{Run: "r1", Epoch: 9, Owner: "o"}
	if err := s.Append(ctx, stale, goclaw.Batch{}); !errors.Is(err, goclaw.ErrFenced) || s.Commits() != 3 {
		t.Errorf("a fenced write: %v, %d commits", err, s.Commits())
	}
}
