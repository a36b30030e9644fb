package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

const unknown = "nobody knows whether it took effect"

// TestAgain loses the connection during a commit, once before the server has
// got it and once after it took effect: the call says so, and made again it
// succeeds, and has taken effect once.
func TestAgain(t *testing.T) {
	at, twin := database(t), database(t)
	for name, call := range map[string]func(w *wire) error{
		"accept": func(w *wire) error {
			run, created, err := w.Accept(w.Context(), goclaw.Acceptance{Run: turn("new"), Key: "key", Blobs: []goclaw.Blob{content("spec")}})
			if err == nil && (run.ID != "new" || run.Ordinal == 0 || created != w.first) {
				w.Errorf("accepted %s, ordinal %d, created %v", run.ID, run.Ordinal, created)
			}
			return err
		},
		"append": func(w *wire) error { return w.Append(w.Context(), w.run.Fence(), w.batch()) },
		"end": func(w *wire) error {
			return w.End(w.Context(), w.run.Fence(), goclaw.Ending{Batch: w.batch(), State: goclaw.StateCompleted, Result: "done",
				Announce: &goclaw.InboxItem{ID: "told", Session: goclaw.MainKey("a"), Source: w.run.ID},
				Outbox:   &goclaw.Outbound{ID: "sent", Session: w.run.Session, Run: w.run.ID}})
		},
		"suspend": func(w *wire) error {
			return w.Suspend(w.Context(), w.run.Fence(), goclaw.Suspension{Batch: w.batch(), For: goclaw.WaitPerson})
		},
		"claim": func(w *wire) error {
			claimed, err := w.Claim(w.Context(), goclaw.ClaimRequest{Owner: "o", Now: 5, Lease: time.Hour, Max: 9})
			if err == nil && (len(claimed) != 1 || claimed[0].Run.ID != "queued" || claimed[0].Run.Epoch != 1 || claimed[0].TakeOver) {
				w.Errorf("claimed %+v", claimed)
			}
			return err
		},
		"fire": func(w *wire) error {
			j, err := w.direct.CronJob(w.Context(), "j")
			if err != nil {
				j, err = w.direct.PutCronJob(w.Context(), goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 1})
			}
			if err != nil {
				return err
			}
			j.Revision = 1 // as it was read before the first try
			_, run, err := w.FireCronJob(w.Context(), firing(j, "fired"))
			if err == nil && (run.ID != "fired" || run.Ordinal == 0) {
				w.Errorf("fired %+v", run)
			}
			return err
		},
		"post": func(w *wire) error {
			return w.Post(w.Context(), w.run.ID, goclaw.InboxItem{ID: "posted", CreatedAt: 1})
		},
	} {
		for _, what := range []loss{question, answer} {
			t.Run(name+" without "+string(what), func(t *testing.T) {
				w := newWire(t, at)
				w.arm(what)
				if err := call(w); err == nil || !strings.Contains(err.Error(), unknown) {
					t.Fatalf("got error %v", err)
				}
				w.first = what == question
				w.arm(nothing)
				if err := call(w); err != nil {
					t.Fatalf("again: %v", err)
				}
				w.first = false
				want := newWire(t, twin)
				want.first = true
				if err := call(want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.state(), w.state()); diff != "" {
					t.Errorf("after a call that went well, and two (-one +two):\n%s", diff)
				}
			})
		}
	}
}

// wire is a store behind a proxy, and a run under way in it.
type wire struct {
	*testing.T
	*postgres.Store
	direct *postgres.Store
	proxy  *proxy
	next   loss
	run    goclaw.Run
	first  bool // the call is the first to take effect
}

func newWire(t *testing.T, at string) *wire {
	t.Helper()
	if err := wipe(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	w := &wire{T: t}
	p, behind := through(t, at)
	w.proxy = p
	w.direct = open(t, at, postgres.Options{})
	w.Store = open(t, behind, postgres.Options{Hook: func(point string) {
		if point == "commit.before" {
			p.lose.Store(w.next)
		}
	}})
	accept := func(r goclaw.Run) {
		if _, _, err := w.direct.Accept(t.Context(), goclaw.Acceptance{Run: r}); err != nil {
			t.Fatal(err)
		}
	}
	accept(turn("helper"))
	accept(turn("worker"))
	claimed, err := w.direct.Claim(t.Context(), goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: time.Hour, Max: 2})
	if err != nil || len(claimed) != 2 {
		t.Fatalf("claimed %d, error %v", len(claimed), err)
	}
	w.run = claimed[1].Run
	err = w.direct.End(t.Context(), claimed[0].Run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 2},
		Announce: &goclaw.InboxItem{ID: "item", Session: w.run.Session, Source: "helper"}})
	if err != nil {
		t.Fatal(err)
	}
	accept(turn("queued"))
	return w
}

// arm makes the next commit lose something, and all that come after succeed.
func (w *wire) arm(what loss) {
	w.next = what
	w.proxy.lose.Store(nothing)
}

func (w *wire) batch() goclaw.Batch {
	cost := 0.5
	return goclaw.Batch{
		Events: []goclaw.Event{
			{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{PromptSHA: "s"}},
			{Seq: 1, Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Usage: goclaw.Usage{Input: 5, CostUSD: &cost}}},
		},
		Blobs: []goclaw.Blob{content("blob")}, Consume: []string{"item"},
		Artifacts: []goclaw.ArtifactData{{Name: "a", Data: []byte("b")}, {Name: "c", Data: []byte("blob")}},
		Usage:     &goclaw.Usage{Input: 5, CostUSD: &cost}, Day: "2026-01-02", Now: 3,
	}
}

func content(text string) goclaw.Blob {
	sum := sha256.Sum256([]byte(text))
	return goclaw.Blob{SHA256: hex.EncodeToString(sum[:]), Data: []byte(text)}
}

// state is what can be seen of the store.
func (w *wire) state() []any {
	w.Helper()
	ctx := w.Context()
	runs, err1 := w.direct.Runs(ctx, goclaw.RunFilter{})
	items, err2 := w.direct.Pending(ctx, goclaw.SessionKey{})
	replies, err3 := w.direct.Outbox(ctx, 9, 0)
	usage, err4 := w.direct.Usage(ctx, goclaw.UsageQuery{By: []string{"run", "day"}})
	jobs, err7 := w.direct.CronJobs(ctx)
	firings, err8 := w.direct.Firings(ctx, "j", 0)
	sessions, err5 := w.direct.AllSessions(ctx)
	artifacts, err6 := w.direct.ArtifactsOf(ctx, goclaw.ArtifactFilter{})
	blobs := map[string]string{}
	for _, text := range []string{"spec", "blob", "b"} {
		data, err := w.direct.Blob(ctx, content(text).SHA256)
		if err == nil {
			blobs[text] = string(data)
		} else if !errors.Is(err, goclaw.ErrNotFound) {
			w.Fatal(err)
		}
	}
	var logs [][]goclaw.Event
	for i, r := range runs {
		events, err := w.direct.Events(ctx, r.ID)
		if err != nil {
			w.Fatal(err)
		}
		logs = append(logs, events)
		runs[i].Ordinal = 0 // lost commits leave gaps
	}
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		w.Fatal(err)
	}
	return []any{runs, logs, items, replies, usage, sessions, artifacts, blobs, jobs, firings}
}

// firing is a decision to fire j as the run with that id.
func firing(j goclaw.CronJob, run string) goclaw.CronFire {
	return goclaw.CronFire{
		Job: j, Firing: goclaw.Firing{Job: j.ID, Due: 1, At: 2}, Next: 9, Enabled: true,
		Run: &goclaw.Acceptance{Key: "cron " + run, Run: goclaw.Run{
			ID: run, Session: j.Key(), Trigger: goclaw.TriggerCron, State: goclaw.StateQueued, CreatedAt: 2,
		}, Blobs: []goclaw.Blob{content("spec")}},
	}
}

// turn is a user's turn in a session of its own.
func turn(id string) goclaw.Run {
	return goclaw.Run{ID: id, Session: goclaw.APIKey("a", id), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: 1}
}
