package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

// step records an event of a running run and, if told, tells the feed.
func (d *desk) step(r goclaw.Run, seq int, told bool) {
	d.Helper()
	ev := goclaw.Event{Seq: seq, Kind: goclaw.EventInput, Input: &goclaw.InputEvent{Message: goclaw.Text(goclaw.RoleUser, fmt.Sprint(seq))}}
	if seq == 0 {
		ev = goclaw.Event{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{PromptSHA: "s", Input: goclaw.Text(goclaw.RoleUser, "x")}}
	}
	d.append(r, goclaw.Batch{Events: []goclaw.Event{ev}})
	if told {
		d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeEvent, Session: r.Session, RunID: r.ID, Event: &ev})
	}
}

// piece tells a streamed text, which the event seq is to record.
func (d *desk) piece(r goclaw.Run, seq int, text string) {
	d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeText, Session: r.Session, RunID: r.ID, Text: text, Seq: seq})
}

// finish ends a run after its event seq-1.
func (d *desk) finish(r goclaw.Run, seq int) {
	d.Helper()
	ev := goclaw.Event{Seq: seq, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: "r"}}
	now := goclaw.At(r.CreatedAt.Time())
	err := d.store.End(d.T.Context(), r.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Result: "r", Batch: goclaw.Batch{Now: now, Events: []goclaw.Event{ev}}})
	if err != nil {
		d.Fatal(err)
	}
	d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeEvent, Session: r.Session, RunID: r.ID, Event: &ev})
	r.State = goclaw.StateCompleted
	d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r})
}

// shown is a notice of a followed run in a word.
func shown(n goclaw.Notice) string {
	switch {
	case n.Kind == goclaw.NoticeEvent:
		return fmt.Sprint(n.Event.Seq)
	case n.Kind == goclaw.NoticeRun && n.Run.State.Ended():
		return "end:" + n.Run.Result
	case n.Text != "":
		return n.Text
	}
	return string(n.Kind)
}

// heard is what waits in a channel, now that nothing else moves.
func heard(ch <-chan goclaw.Notice) string {
	var words []string
	for {
		synctest.Wait()
		select {
		case n, open := <-ch:
			if !open {
				return strings.Join(append(words, "closed"), " ")
			}
			words = append(words, shown(n))
		default:
			return strings.Join(words, " ")
		}
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		r := d.begin(d.say("go").ID)
		other := d.spawn(r, "other", goclaw.AnnounceNone)
		follow := func(after int) <-chan goclaw.Notice {
			t.Helper()
			ch, err := d.Follow(t.Context(), r.ID[:5], after)
			if err != nil {
				t.Fatal(err)
			}
			return ch
		}
		hear := func(what string, ch <-chan goclaw.Notice, want string) {
			t.Helper()
			if got := heard(ch); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		all := follow(-1)
		hear("nothing yet", all, "")
		d.step(r, 0, true)
		d.piece(r, 1, "he")
		d.piece(other, 1, "not ours")
		hear("an event and a piece", all, "0 he")
		d.piece(r, 1, "llo")
		d.step(r, 1, true)
		d.piece(r, 1, "too late")
		hear("a piece of what is recorded never follows it", all, "llo 1")
		d.step(r, 2, false)
		d.step(r, 3, false)
		d.step(r, 4, true)
		hear("events that nobody told of", all, "2 3 4")
		d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeToolCall, Session: r.Session, RunID: r.ID})
		d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeRetry, Session: r.Session, RunID: r.ID, Text: "later"})
		hear("what the events tell, and what they don't", all, "later")
		hear("from the middle", follow(2), "3 4")
		hear("from the newest", follow(4), "")
		d.finish(r, 5)
		hear("the end", all, "5 end:r closed")
		hear("a run that has ended", follow(3), "4 5 end:r closed")
		hear("one that was read to its end", follow(5), "end:r closed")
		if _, err := d.Follow(t.Context(), "nope", -1); !errors.Is(err, goclaw.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestFollowASlowReaderMissesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		r := d.begin(d.say("go").ID)
		ch, err := d.Follow(t.Context(), r.ID, -1)
		if err != nil {
			t.Fatal(err)
		}
		d.step(r, 0, true)
		synctest.Wait()     // it has an event on offer, and takes no more
		const events = 1000 // far more than the feed keeps
		for seq := 1; seq < events; seq++ {
			d.step(r, seq, true)
		}
		d.finish(r, events)
		next, lags := 0, 0
		for n := range ch {
			switch n.Kind {
			case goclaw.NoticeEvent:
				if n.Event.Seq != next {
					t.Fatalf("%d after %d", n.Event.Seq, next-1)
				}
				next++
			case goclaw.NoticeLag:
				lags++
			}
		}
		if next != events+1 || lags == 0 {
			t.Errorf("%d events, %d lags", next, lags)
		}
	})
}

// A run that another process holds tells nothing here.
func TestFollowElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		g := gateway.New(gateway.Options{Record: d.store, Feed: d.feed, Elsewhere: func(r goclaw.Run) bool { return r.Owner == "p" }})
		r := d.begin(d.say("go").ID)
		d.step(r, 0, false)
		ch, err := g.Follow(t.Context(), r.ID, -1)
		if err != nil {
			t.Fatal(err)
		}
		d.step(r, 1, false)
		if n := <-ch; n.Event.Seq != 0 {
			t.Errorf("%+v", n)
		}
		d.step(r, 2, false)
		for want := 1; want <= 2; want++ {
			if n := <-ch; n.Event.Seq != want { // time goes on while nothing else moves
				t.Errorf("%+v", n)
			}
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		r := d.begin(d.say("go").ID)
		d.step(r, 0, true)
		ctx, cancel := context.WithCancel(t.Context())
		ch, err := d.Follow(ctx, r.ID, -1)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it has an event on offer
		cancel()
		synctest.Wait()
		for n := range ch {
			t.Errorf("one more: %+v", n)
		}
	})
}

// Readers of all kinds come and go while a run is worked on, some of its events
// are told late or never, and text passes: each reads every event once, in order.
func TestFollowLosesNothing(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 5))
			d := newDesk(t)
			r := d.begin(d.say("go").ID)
			const events = 300
			next, reads := 0, 0
			done := make(chan struct{})
			patience := make([]int, 50)
			for i := range patience {
				patience[i] = 1 + dice.IntN(100)
			}
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					ctx, cancel := context.WithCancel(t.Context())
					ch, err := d.Follow(ctx, r.ID, next-1)
					if err != nil {
						t.Error(err)
						cancel()
						return
					}
					left := patience[i%len(patience)]
					for n := range ch {
						if reads++; n.Kind == goclaw.NoticeRun && n.Run.State.Ended() {
							cancel()
							return
						}
						if n.Kind == goclaw.NoticeEvent {
							if n.Event.Seq != next {
								t.Errorf("seed %d: %d, want %d", seed, n.Event.Seq, next)
							}
							next++
						} else if n.Seq != 0 && n.Seq < next {
							t.Errorf("seed %d: a piece of %d after it", seed, n.Seq)
						}
						if left--; left == 0 {
							break
						}
					}
					cancel()
				}
			}()
			for seq := range events {
				for range dice.IntN(4) {
					d.piece(r, seq, "x")
				}
				d.step(r, seq, dice.IntN(5) > 0)
				if dice.IntN(3) == 0 {
					synctest.Wait()
				}
			}
			d.finish(r, events)
			<-done
			if next != events+1 {
				t.Errorf("seed %d: %d events of %d", seed, next, events+1)
			}
		})
	}
}
