package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
)

// Pair is a store and its model, both empty.
type Pair struct {
	Model   Store
	Subject Store
	Reopen  func() (Store, error) // gives the subject anew after it was closed
	Remove  func()                // is called after Close
}

// Agree does the same random things to a store and to its model, and compares
// whatever can be seen of them.
func Agree(t *testing.T, open func() (Pair, error)) {
	rapid.Check(t, func(rt *rapid.T) {
		made, err := open()
		if err != nil {
			rt.Fatal(err)
		}
		p := &pair{T: rt, Pair: made, ctx: t.Context(), now: 1000, fences: []goclaw.Fence{{Run: "none", Epoch: 1}}}
		defer func() {
			_ = p.Subject.Close()
			p.Remove()
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"accept":    p.accept,
			"accept ":   p.accept, // what nothing else can do without comes more often
			"claim":     p.claim,
			"claim ":    p.claim,
			"append":    p.append,
			"end":       p.end,
			"suspend":   p.suspend,
			"post":      p.post,
			"resume":    p.resume,
			"cancel":    p.cancel,
			"heartbeat": p.heartbeat,
			"release":   p.release,
			"deliver":   p.deliver,
			"decide":    p.decide,
			"tidy":      p.tidy,
			"session":   p.session,
			"outbox":    p.outbox,
			"reserve":   p.reserve,
			"rate":      p.rate,
			"pause":     p.pause,
			"usage":     p.usage,
			"cron job":  p.cronJob,
			"fire":      p.fireCron,
			"fire ":     p.fireCron,
			"trim":      p.trim,
			"ask":       p.ask,
			"reopen":    p.reopen,
			"wait":      func(rt *rapid.T) { p.now += goclaw.Millis(rapid.IntRange(0, 2000).Draw(rt, "ms")) },
		})
		p.compareAll()
	})
}

// pair is what was learnt from a store and its model.
type pair struct {
	*rapid.T
	Pair
	ctx context.Context

	now    goclaw.Millis
	serial int
	runs   []goclaw.Run
	fences []goclaw.Fence
	items  []string
	posts  []string
}

func (p *pair) reopen(*rapid.T) {
	if err := p.Subject.Close(); err != nil {
		p.Fatal(err)
	}
	s, err := p.Reopen()
	if err != nil {
		p.Fatal(err)
	}
	p.Subject = s
}

// both does f to both stores, compares the answers and returns the model's.
func both[V any](p *pair, what string, f func(Store) (V, error)) (V, error) {
	p.Helper()
	want, wantErr := f(p.Model)
	got, gotErr := f(p.Subject)
	if class(wantErr) != class(gotErr) {
		p.Fatalf("%s: got error %v, want %v", what, gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Fatalf("%s (-model +subject):\n%s", what, diff)
	}
	return want, wantErr
}

func bothDo(p *pair, what string, f func(Store) error) error {
	p.Helper()
	_, err := both(p, what, func(s Store) (struct{}, error) { return struct{}{}, f(s) })
	return err
}

// class is what a caller can branch on.
func class(err error) string {
	for _, sentinel := range []error{goclaw.ErrNotFound, goclaw.ErrFenced, goclaw.ErrTooManyChildren, goclaw.ErrTreeFull,
		goclaw.ErrConsumed, goclaw.ErrEnded, goclaw.ErrWoken, goclaw.ErrChanged, goclaw.ErrBusy} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	if err != nil {
		return "other"
	}
	return "none"
}

func (p *pair) key(rt *rapid.T) goclaw.SessionKey {
	return rapid.SampledFrom([]goclaw.SessionKey{
		goclaw.MainKey("a"), goclaw.MainKey("b"), goclaw.SubagentKey("a", "1"), goclaw.SubagentKey("a", "2"), goclaw.CronKey("b", "j:1"),
	}).Draw(rt, "session")
}

func (p *pair) owner(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(rt, "owner")
}

func (p *pair) runID(rt *rapid.T) string {
	if len(p.runs) == 0 {
		return "none"
	}
	return rapid.SampledFrom(p.runs).Draw(rt, "run").ID
}

func (p *pair) fence(rt *rapid.T) goclaw.Fence {
	// Mostly a recent one, which still holds.
	from := 0
	if rapid.IntRange(0, 4).Draw(rt, "recent") > 0 {
		from = max(0, len(p.fences)-3)
	}
	return rapid.SampledFrom(p.fences[from:]).Draw(rt, "fence")
}

func (p *pair) id(kind string) string {
	p.serial++
	return fmt.Sprintf("%s-%04d", kind, p.serial)
}

func (p *pair) compareAll() {
	runs, _ := both(p, "all runs", func(s Store) ([]goclaw.Run, error) { return s.Runs(p.ctx, goclaw.RunFilter{}) })
	_, _ = both(p, "all sessions", func(s Store) ([]goclaw.Session, error) { return s.AllSessions(p.ctx) })
	_, _ = both(p, "all items", func(s Store) ([]goclaw.InboxItem, error) { return s.Pending(p.ctx, goclaw.SessionKey{}) })
	_, _ = both(p, "the outbox", func(s Store) ([]goclaw.Outbound, error) { return s.Outbox(p.ctx, p.now*2, 0) })
	_, _ = both(p, "parked", func(s Store) ([]goclaw.Parked, error) { return s.Parked(p.ctx) })
	jobs, _ := both(p, "cron jobs", func(s Store) ([]goclaw.CronJob, error) { return s.CronJobs(p.ctx) })
	for _, j := range jobs {
		_, _ = both(p, "firings", func(s Store) ([]goclaw.Firing, error) { return s.Firings(p.ctx, j.ID, 0) })
	}
	_, _ = both(p, "the queue", func(s Store) ([]string, error) { return s.Queue(p.ctx) })
	_, _ = both(p, "counts", func(s Store) ([2]int, error) {
		active, queued, err := s.Counts(p.ctx)
		return [2]int{active, queued}, err
	})
	for _, r := range runs {
		events, _ := both(p, "events", func(s Store) ([]goclaw.Event, error) { return s.Events(p.ctx, r.ID) })
		for _, e := range events {
			if e.Kind == goclaw.EventResult {
				p.blob(e.Result.Content)
			}
		}
		p.blob(r.Task)
	}
	artifacts, _ := both(p, "artifacts", func(s Store) ([]goclaw.Artifact, error) { return s.ArtifactsOf(p.ctx, goclaw.ArtifactFilter{}) })
	for _, a := range artifacts {
		_, _ = both(p, "blob", func(s Store) (string, error) {
			data, err := s.Blob(p.ctx, a.SHA256)
			return string(data), err
		})
	}
}

// blob asks for content that may have been stored.
func (p *pair) blob(text string) {
	_, _ = both(p, "blob", func(s Store) (string, error) {
		data, err := s.Blob(p.ctx, blob(text).SHA256)
		return string(data), err
	})
}
