package feed_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/runtime/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func text(run, s string) goclaw.Notice {
	return goclaw.Notice{Kind: goclaw.NoticeText, Session: goclaw.MainKey("main"), RunID: run, Text: s}
}

func call(run string) goclaw.Notice {
	return goclaw.Notice{Kind: goclaw.NoticeToolCall, Session: goclaw.MainKey("main"), RunID: run}
}

// drain reads what is waiting; it must be called inside a synctest bubble.
func drain(ch <-chan goclaw.Notice) []goclaw.Notice {
	var got []goclaw.Notice
	for {
		synctest.Wait()
		select {
		case n, ok := <-ch:
			if !ok {
				return got
			}
			got = append(got, n)
		default:
			return got
		}
	}
}

func TestDelivery(t *testing.T) {
	for _, tc := range []struct {
		name    string
		match   func(goclaw.Notice) bool
		publish []goclaw.Notice
		want    []goclaw.Notice
	}{
		{"nothing", nil, nil, nil},
		{"in order", nil, []goclaw.Notice{call("a"), text("a", "x"), call("b")}, []goclaw.Notice{call("a"), text("a", "x"), call("b")}},
		{"only what matches", func(n goclaw.Notice) bool { return n.RunID == "b" },
			[]goclaw.Notice{call("a"), call("b"), call("a")}, []goclaw.Notice{call("b")}},
		// The first piece has left the queue before the second arrives.
		{"waiting text is joined", nil, []goclaw.Notice{text("a", "1"), text("a", "2"), text("a", "3")},
			[]goclaw.Notice{text("a", "1"), text("a", "23")}},
		{"text of two runs is not joined", nil, []goclaw.Notice{call("a"), text("a", "1"), text("b", "2"), text("a", "3")},
			[]goclaw.Notice{call("a"), text("a", "1"), text("b", "2"), text("a", "3")}},
		{"text and thinking are not joined", nil,
			[]goclaw.Notice{call("a"), text("a", "1"), {Kind: goclaw.NoticeThinking, Session: goclaw.MainKey("main"), RunID: "a", Text: "2"}},
			[]goclaw.Notice{call("a"), text("a", "1"), {Kind: goclaw.NoticeThinking, Session: goclaw.MainKey("main"), RunID: "a", Text: "2"}}},
		{"joined text is bounded", nil,
			[]goclaw.Notice{call("a"), text("a", strings.Repeat("x", 4000)), text("a", strings.Repeat("y", 4000))},
			[]goclaw.Notice{call("a"), text("a", strings.Repeat("x", 4000)), text("a", strings.Repeat("y", 4000))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b := feed.New()
				ch := b.Subscribe(ctx, tc.match)
				for i, n := range tc.publish {
					b.Publish(n)
					if i == 0 {
						synctest.Wait() // the reader's goroutine now offers the first one
					}
				}
				if diff := cmp.Diff(tc.want, drain(ch)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestSlowSubscriberGetsOneLagInTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := feed.New()
		slow, quick := b.Subscribe(ctx, nil), b.Subscribe(ctx, nil)
		var seen int
		for i := range 1000 {
			b.Publish(call(fmt.Sprint(i)))
			seen += len(drain(quick))
		}
		if seen != 1000 {
			t.Errorf("a quick subscriber beside a slow one got %d of 1000", seen)
		}
		got := drain(slow)
		var lags int
		for i, n := range got {
			if n.Kind == goclaw.NoticeLag {
				lags++
				if i != len(got)-1 {
					t.Errorf("the lag stands at %d of %d", i, len(got))
				}
			} else if n.RunID != fmt.Sprint(i) {
				t.Fatalf("notice %d is %q", i, n.RunID)
			}
		}
		if lags != 1 || len(got) != 258 { // 256 queued, one on offer, the lag
			t.Errorf("%d lags in %d notices", lags, len(got))
		}
		b.Publish(call("later"))
		if diff := cmp.Diff([]goclaw.Notice{call("later")}, drain(slow)); diff != "" {
			t.Error("after the lag: " + diff)
		}
	})
}

func TestEndOfContextClosesAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := feed.New()
		asked := 0
		ch := b.Subscribe(ctx, func(goclaw.Notice) bool { asked++; return true })
		b.Publish(call("a"))
		b.Publish(call("b"))
		cancel()
		synctest.Wait()
		for range ch { //nolint:revive // only that it ends
		}
		b.Publish(call("c"))
		if asked != 2 {
			t.Errorf("match was asked %d times", asked)
		}
		if _, open := <-b.Subscribe(ctx, nil); open {
			t.Error("an ended context got a notice")
		}
	})
}

func TestManyPublishersAndSubscribers(t *testing.T) {
	const publishers, each = 8, 100
	ctx, cancel := context.WithCancel(t.Context())
	b := feed.New()
	var readers, writers sync.WaitGroup
	for range 4 {
		ch := b.Subscribe(ctx, func(n goclaw.Notice) bool { return n.Kind == goclaw.NoticeToolCall })
		readers.Go(func() {
			last := map[string]string{}
			for n := range ch {
				if n.Kind == goclaw.NoticeLag {
					continue
				}
				if n.Text <= last[n.RunID] {
					t.Errorf("publisher %s: %s after %s", n.RunID, n.Text, last[n.RunID])
				}
				last[n.RunID] = n.Text
			}
		})
	}
	for p := range publishers {
		writers.Go(func() {
			for i := range each {
				b.Publish(goclaw.Notice{Kind: goclaw.NoticeToolCall, RunID: fmt.Sprint(p), Text: fmt.Sprintf("%03d", i+1)})
				b.Publish(text(fmt.Sprint(p), "not wanted"))
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
}

func TestPublishToNobodyDoesNotAllocate(t *testing.T) {
	b, n := feed.New(), text("a", "x")
	if got := testing.AllocsPerRun(100, func() { b.Publish(n) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func ExampleBroker() {
	ctx, cancel := context.WithCancel(context.Background())
	b := feed.New()
	notices := b.Subscribe(ctx, func(n goclaw.Notice) bool { return n.Session == goclaw.MainKey("main") })
	b.Publish(goclaw.Notice{Kind: goclaw.NoticeText, Session: goclaw.MainKey("other"), Text: "not for us"})
	b.Publish(goclaw.Notice{Kind: goclaw.NoticeText, Session: goclaw.MainKey("main"), Text: "hello"})
	fmt.Println((<-notices).Text)
	cancel()
	for range notices { // wait until the subscription has ended
	}
	// Output: hello
}
