package gateway_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

// awaited is what Await returned, once it has.
type awaited struct {
	out  goclaw.Outcome
	err  error
	done chan struct{}
}

func (d *desk) await(ctx context.Context, id string, workers bool) *awaited {
	a := &awaited{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.out, a.err = d.Await(ctx, id, workers)
	}()
	return a
}

// returned reports whether Await has returned, now that nothing moves.
func (a *awaited) returned() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// A message with two workers, from the first turn to the answer to both.
func TestAwaitWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		alone, all := d.await(t.Context(), turn.ID, false), d.await(t.Context(), turn.ID, true)
		d.begin(turn.ID)
		one := d.spawn(turn, "one", goclaw.AnnounceTogether)
		two := d.spawn(turn, "two", goclaw.AnnounceTogether)
		if alone.returned() || all.returned() {
			t.Fatal("Await returned before the turn's end")
		}
		d.end(turn.ID, ending{result: "started"})
		if !alone.returned() || all.returned() {
			t.Fatal("the turn's end must end Await without workers, and only that")
		}
		if alone.err != nil || alone.out.Reply != "started" || alone.out.Unfinished != 2 || alone.out.Turns != 1 || alone.out.Status != goclaw.StateCompleted {
			t.Fatalf("%+v, %v", alone.out, alone.err)
		}
		d.end(one.ID, ending{result: "r1"})
		d.end(two.ID, ending{result: "r2", state: goclaw.StateTimeout, problem: "too late"})
		if all.returned() {
			t.Fatal("Await returned before the results were announced")
		}
		other := d.announcement() // of something else
		d.end(other.ID, ending{result: "not about this"})
		told := d.announcement()
		if all.returned() {
			t.Fatal("Await returned before the results were answered")
		}
		d.end(told.ID, ending{result: "both are there", takes: []string{one.ID, two.ID}})
		if !all.returned() {
			t.Fatal("Await did not return")
		}
		out := all.out
		var runs []string
		for _, r := range out.Runs {
			runs = append(runs, r.Label+" "+string(r.Status)+" "+r.Error)
		}
		out.Runs = nil
		want := goclaw.Outcome{
			Session: mainKey, Reply: "both are there", Replies: []string{"started", "both are there"}, Turns: 2,
			Usage: goclaw.Usage{Input: 400, Output: 40}, Status: goclaw.StateCompleted,
		}
		if diff := cmp.Diff(want, out); diff != "" || all.err != nil {
			t.Errorf("%v\n%s", all.err, diff)
		}
		if diff := cmp.Diff([]string{"one completed ", "two timeout too late"}, runs); diff != "" {
			t.Error(diff)
		}
	})
}

// Workers of workers, and those that the announcement's turn starts, belong to
// what the message led to; those that announce nothing need no answer.
func TestAwaitFollowsTheWholeTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		all := d.await(t.Context(), turn.ID, true)
		d.begin(turn.ID)
		one := d.spawn(turn, "one", goclaw.AnnounceEach)
		inner := d.spawn(one, "inner", goclaw.AnnounceTogether)
		mute := d.spawn(turn, "mute", goclaw.AnnounceNone)
		d.end(turn.ID, ending{result: "started"})
		d.end(one.ID, ending{result: "r1"})
		told := d.announcement()
		d.begin(told.ID)
		later := d.spawn(told, "later", goclaw.AnnounceTogether)
		d.end(told.ID, ending{silent: true, result: goclaw.NoReply, takes: []string{one.ID}})
		d.end(inner.ID, ending{result: "ri"})
		if all.returned() {
			t.Fatal("Await returned while workers ran")
		}
		d.end(mute.ID, ending{result: "rm"})
		d.end(later.ID, ending{result: "rl"})
		if all.returned() {
			t.Fatal("Await returned before the last result was answered")
		}
		last := d.announcement()
		d.end(last.ID, ending{result: "done", takes: []string{later.ID}})
		if all.returned() {
			t.Fatal("Await returned before the result of a worker's worker had gone anywhere")
		}
		if err := d.store.Redirect(t.Context(), inner.ID, mainKey); err != nil {
			t.Fatal(err)
		}
		very := d.announcement()
		d.end(very.ID, ending{silent: true, result: goclaw.NoReply, takes: []string{inner.ID}})
		if !all.returned() || all.err != nil {
			t.Fatalf("Await did not return: %v", all.err)
		}
		if out := all.out; out.Turns != 4 || len(out.Runs) != 4 || out.Reply != "done" || !cmp.Equal(out.Replies, []string{"started", "done"}) {
			t.Errorf("%+v", out)
		}
	})
}

// A worker that waits for its own has not ended; what it took between its steps
// needs no turn of the chat, nor does what a turn waited for with a tool.
func TestAwaitNestedAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		all := d.await(t.Context(), turn.ID, true)
		d.begin(turn.ID)
		boss := d.begin(d.spawn(turn, "boss", goclaw.AnnounceTogether).ID)
		inner := d.spawn(boss, "inner", goclaw.AnnounceTogether)
		d.suspend(boss, goclaw.WaitWorkers)
		d.end(turn.ID, ending{result: "started"})
		d.end(inner.ID, ending{result: "ri"})
		if all.returned() {
			t.Fatal("Await returned while a worker waited for its own")
		}
		d.end(boss.ID, ending{result: "rb", takes: []string{inner.ID}})
		if all.returned() {
			t.Fatal("Await returned before the result was told")
		}
		// A later turn of the person takes the result by a tool.
		next := d.begin(d.say("and?").ID)
		d.append(next, goclaw.Batch{Consume: []string{boss.ID}, Events: []goclaw.Event{
			{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, "and?")}},
		}})
		<-all.done
		if out := all.out; all.err != nil || out.Unfinished != 0 || out.Turns != 1 || len(out.Runs) != 2 {
			t.Errorf("%+v, %v", out, all.err)
		}
	})
}

// A turn that never reached its model gave back what it was to tell: it is no
// part of the outcome, and what is parked in the end is not waited for.
func TestAwaitReturnedAndParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		all := d.await(t.Context(), turn.ID, true)
		d.begin(turn.ID)
		one := d.spawn(turn, "one", goclaw.AnnounceTogether)
		d.end(turn.ID, ending{result: "started"})
		d.end(one.ID, ending{result: "r1"})
		d.end(d.announcement().ID, ending{state: goclaw.StateFailed, problem: "HTTP 529", takes: []string{one.ID}, gives: &goclaw.Return{Why: "HTTP 529"}})
		if all.returned() {
			t.Fatal("Await returned although the result is to be told again")
		}
		d.end(d.announcement().ID, ending{state: goclaw.StateFailed, problem: "HTTP 529", takes: []string{one.ID}, gives: &goclaw.Return{Why: "HTTP 529", Parked: true}})
		<-all.done
		if out := all.out; all.err != nil || out.Unfinished != 1 || out.Turns != 1 || out.Status != goclaw.StateCompleted || out.Reply != "started" {
			t.Errorf("%+v, %v", out, all.err)
		}
	})
}

func TestAwaitOfAFailedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		d.end(turn.ID, ending{state: goclaw.StateFailed, problem: "HTTP 401"})
		out, err := d.Await(t.Context(), turn.ID, true)
		want := goclaw.Outcome{
			Session: mainKey, Replies: []string{}, Runs: []goclaw.RunInfo{}, Turns: 1,
			Usage: goclaw.Usage{Input: 100, Output: 10}, Status: goclaw.StateFailed, Error: "HTTP 401",
		}
		if diff := cmp.Diff(want, out); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// A run that another process holds ends without a notice here.
func TestAwaitLooksByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		fence := d.begin(turn.ID).Fence()
		a := d.await(t.Context(), turn.ID, false)
		synctest.Wait()
		err := d.store.End(t.Context(), fence, goclaw.Ending{State: goclaw.StateCompleted, Result: "ok", Batch: goclaw.Batch{
			Now: 1, Events: []goclaw.Event{{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: "ok"}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-a.done
		if took := time.Since(began); a.err != nil || a.out.Reply != "ok" || took > time.Second {
			t.Errorf("after %s: %+v, %v", took, a.out, a.err)
		}
	})
}

func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		a := d.await(ctx, turn.ID, true)
		if a.returned() {
			t.Fatal("Await returned")
		}
		cancel(gone)
		if !a.returned() || !errors.Is(a.err, gone) || a.out.Status != goclaw.StateQueued {
			t.Errorf("%+v, %v", a.out, a.err)
		}
		if _, err := d.Await(t.Context(), "nope-nope", false); !errors.Is(err, goclaw.ErrNotFound) {
			t.Error(err)
		}
		b := d.await(t.Context(), turn.ID, true)
		synctest.Wait()
		if err := d.store.Close(); err != nil {
			t.Fatal(err)
		}
		if <-b.done; b.err == nil {
			t.Error("no error from a closed store")
		}
	})
}

// An outcome tells that its last reply was cut off at the model's limit.
func TestAwaitCutReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for result, cut := range map[string]bool{"all": false, "half\n\n[cut here: the model reached its output limit]": true} {
			run := d.say("go")
			d.begin(run.ID)
			d.end(run.ID, ending{result: result})
			if out, err := d.Await(t.Context(), run.ID, false); err != nil || out.Cut != cut {
				t.Errorf("%q: %+v, %v", result, out, err)
			}
		}
	})
}
