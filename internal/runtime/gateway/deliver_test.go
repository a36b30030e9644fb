package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

// post is a channel that fails as often as a test says, per text; -1 is always.
type post struct {
	began time.Time
	fails map[string]int
	hangs map[string]bool

	mu   sync.Mutex
	sent []string // "after text", with ! for a failure
}

func (p *post) Name() string { return "post" }

func (p *post) Receive(context.Context, func(context.Context, goclaw.Inbound) (goclaw.Receipt, error)) error {
	return errors.New("not used here")
}

func (p *post) Send(ctx context.Context, out goclaw.Outbound) error {
	if p.hangs[out.Text] {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	note := fmt.Sprintf("%s %s", time.Since(p.began), out.Text)
	if out.ReplyTo != "" {
		note += ", to " + out.ReplyTo
	}
	if p.fails[out.Text] != 0 {
		p.fails[out.Text]--
		p.sent = append(p.sent, note+" !")
		return errors.New("the service is down")
	}
	p.sent = append(p.sent, note)
	return nil
}

func peer(channel, name string) goclaw.SessionKey {
	return goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: channel, PeerKind: "direct", Peer: name}
}

// reply records a turn of a channel's session that ended with text.
func (d *desk) reply(key goclaw.SessionKey, text string) string {
	d.Helper()
	run, err := d.runner.accept(d.T.Context(), goclaw.Run{Session: key, Trigger: goclaw.TriggerUser, Task: "?"}, "")
	if err != nil {
		d.Fatal(err)
	}
	return d.end(run.ID, ending{result: text}).ID
}

// deliver runs a deliverer for some time.
func deliver(t *testing.T, box gateway.Outbox, p *post, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	p.began = time.Now()
	mail := gateway.Deliverer{Outbox: box, Channels: map[string]goclaw.Channel{"post": p}, Log: slog.New(slog.DiscardHandler)}
	if err := mail.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestDeliveryKeepsTheOrderOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.reply(peer("post", "ann"), "ann 1")
		d.reply(peer("post", "ann"), "ann 2")
		d.reply(peer("post", "bob"), "bob 1")
		d.reply(peer("post", "ann"), "ann 3")
		p := &post{fails: map[string]int{"ann 2": 3}}
		deliver(t, d.store, p, time.Minute)
		// After a failure it waits 1, 2, 4 s; nobody else waits with it.
		want := []string{
			"0s ann 1", "0s bob 1", "0s ann 2 !", "1s ann 2 !", "3s ann 2 !", "7s ann 2", "7s ann 3",
		}
		if diff := cmp.Diff(want, p.sent); diff != "" {
			t.Error(diff)
		}
		if left, err := d.store.Outbox(t.Context(), goclaw.At(time.Now().Add(time.Hour)), 0); err != nil || len(left) != 0 {
			t.Errorf("left over: %+v, %v", left, err)
		}
	})
}

func TestDeliveryParksWhatNeverWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.reply(peer("post", "ann"), "cursed")
		d.reply(peer("post", "ann"), "fine")
		d.reply(peer("elsewhere", "eve"), "lost")
		p := &post{fails: map[string]int{"cursed": -1}}
		box := &marks{box: d.store}
		deliver(t, box, p, 2*time.Hour)
		tries := 0
		for _, s := range p.sent {
			if s[len(s)-1] == '!' {
				tries++
			}
		}
		if last := p.sent[len(p.sent)-1]; tries != 10 || last != "8m31s fine" {
			t.Errorf("%d tries, then %q", tries, last)
		}
		want := []string{"0003-run parked: the channel elsewhere is not configured", "0001-run parked: the service is down"}
		if diff := cmp.Diff(want, box.parked); diff != "" {
			t.Error(diff)
		}
	})
}

// A channel that hangs is given up after its time; a process that stops in the
// middle leaves the reply to the next one.
func TestDeliveryIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.reply(peer("post", "ann"), "stuck")
		p := &post{hangs: map[string]bool{"stuck": true}}
		began := time.Now()
		deliver(t, d.store, p, 10*time.Second)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		p.hangs = nil
		deliver(t, d.store, p, time.Minute)
		if len(p.sent) != 1 {
			t.Errorf("%q", p.sent)
		}
	})
}

// Several gateways on one store send each reply once.
func TestDeliveryByManyGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		var want []string
		for i := range 20 {
			text := fmt.Sprintf("to p%02d", i)
			d.reply(peer("post", fmt.Sprintf("p%02d", i)), text)
			want = append(want, "0s "+text)
		}
		p := &post{began: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				mail := gateway.Deliverer{Outbox: d.store, Channels: map[string]goclaw.Channel{"post": p}, Log: slog.New(slog.DiscardHandler)}
				if err := mail.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		slices.Sort(p.sent)
		if diff := cmp.Diff(want, p.sent); diff != "" {
			t.Error(diff)
		}
	})
}

// The channel is told which message is answered, and gets the text without tag.
func TestDeliveryTakesTheReplyTagOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for i, text := range []string{"[[reply_to:17]]hello", "plain [[reply_to:17]]"} {
			d.reply(peer("post", fmt.Sprint(i)), text)
		}
		p := &post{}
		deliver(t, d.store, p, time.Minute)
		if want := []string{"0s hello, to 17", "0s plain [[reply_to:17]]"}; !cmp.Equal(want, p.sent) {
			t.Errorf("%q, want %q", p.sent, want)
		}
	})
}

// A store that can't be read or written is asked again, in its own time.
func TestDeliverySurvivesItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.reply(peer("post", "ann"), "patient")
		p := &post{}
		box := &marks{box: d.store, failReads: 3, failMarks: 3}
		deliver(t, box, p, time.Minute)
		if want := []string{"6s patient"}; !cmp.Equal(want, p.sent) {
			t.Errorf("%q, want %q", p.sent, want)
		}
	})
}

// marks notes what is parked, and fails its first calls.
type marks struct {
	box                  gateway.Outbox
	failReads, failMarks int
	parked               []string
}

func (m *marks) Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error) {
	if m.failReads > 0 {
		m.failReads--
		return nil, errors.New("the database is locked")
	}
	return m.box.Outbox(ctx, now, limit)
}

func (m *marks) TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (bool, error) {
	if m.failMarks > 0 {
		m.failMarks--
		return false, errors.New("the database is locked")
	}
	return m.box.TakeOutbox(ctx, id, now, until)
}

func (m *marks) MarkOutbox(ctx context.Context, id, state string, next goclaw.Millis, problem string) error {
	if m.failMarks > 0 {
		m.failMarks--
		return errors.New("the database is locked")
	}
	if state == "parked" {
		m.parked = append(m.parked, id+" parked: "+problem)
	}
	return m.box.MarkOutbox(ctx, id, state, next, problem)
}
