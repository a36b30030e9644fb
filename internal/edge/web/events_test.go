package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/client"
)

func synctestRun(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestEventsOfASessionAndItsWorkers(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		early, other := worker("early", mainKey), worker("other", goclaw.APIKey("main", "bob"))
		grandchild := worker("grandchild", early.Session)
		f := &fake{runs: func(q goclaw.RunFilter) []goclaw.Run {
			switch {
			case q.Active && q.Requester == mainKey:
				return []goclaw.Run{early}
			case q.Active && q.Requester == early.Session:
				return []goclaw.Run{grandchild}
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		notices, err := connect(gateway(f)).Notices(ctx, mainKey)
		if err != nil {
			t.Fatal(err)
		}
		late := worker("late", mainKey)
		say := func(r goclaw.Run, text string) goclaw.Notice {
			return goclaw.Notice{Kind: goclaw.NoticeText, Session: r.Session, RunID: r.ID, Text: text}
		}
		change := func(r goclaw.Run, state goclaw.RunState) goclaw.Notice {
			r.State = state
			return goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r}
		}
		mine := []goclaw.Notice{
			{Kind: goclaw.NoticeText, Session: mainKey, RunID: "r", Text: "own\n\ntext"},
			say(early, "early"),
			say(grandchild, "grandchild"),
			{Kind: goclaw.NoticeWarning, Session: mainKey, RunID: "r", Text: "SOUL.md was cut"},
			{Kind: goclaw.NoticeCompact, Session: mainKey, RunID: "r", Text: "90,000 to 12,000 tokens"},
			change(late, goclaw.StateQueued),
			{Kind: goclaw.NoticeToolCall, Session: late.Session, RunID: late.ID, Call: &goclaw.ToolCall{ID: "c", Name: "read", Arguments: "{}"}},
			change(late, goclaw.StateCompleted),
		}
		f.publish(say(late, "not known yet"), say(other, "of another"), change(other, goclaw.StateRunning))
		for _, n := range mine {
			f.publish(n, say(other, "of another"))
		}
		var got []goclaw.Notice
		for range mine {
			got = append(got, <-notices)
		}
		if diff := cmp.Diff(mine, got); diff != "" {
			t.Error(diff)
		}
		cancel()
		for n := range notices {
			t.Errorf("one more: %+v", n)
		}
	})
}

func TestAllEvents(t *testing.T) {
	f := &fake{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	notices, err := client.InProcess(gateway(f), token).Notices(ctx, goclaw.SessionKey{})
	if err != nil {
		t.Fatal(err)
	}
	f.publish(goclaw.Notice{Kind: goclaw.NoticeLag}, goclaw.Notice{Kind: goclaw.NoticeText, Session: goclaw.CronKey("main", "j"), Text: "x"})
	if a, b := <-notices, <-notices; a.Kind != goclaw.NoticeLag || b.Text != "x" {
		t.Errorf("%+v, %+v", a, b)
	}
	cancel()
	for range notices { //nolint:revive // until it has ended
	}
}

// stream opens the raw stream of events.
func stream(t *testing.T, ctx context.Context, hc *http.Client, base string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestEventFormat(t *testing.T) {
	f := &fake{}
	srv := serve(t, gateway(f))
	res := stream(t, t.Context(), srv.Client(), srv.URL)
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Error(got)
	}
	f.publish(goclaw.Notice{Kind: goclaw.NoticeText, Session: mainKey, RunID: "r", Text: "a\nb"})
	lines := bufio.NewScanner(res.Body)
	var got []string
	for len(got) < 4 && lines.Scan() {
		got = append(got, lines.Text())
	}
	want := []string{": open", "", "event: text", `data: {"kind":"text","session":"agent:main:main","runId":"r","text":"a\nb"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQuietStreamSaysThatItLives(t *testing.T) {
	synctestRun(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		pr, pw := net.Pipe()
		served := make(chan struct{})
		w := &pipeWriter{w: pw, header: http.Header{}}
		go func() {
			defer close(served)
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost/api/events", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+token)
			gateway(&fake{}).ServeHTTP(w, r)
			_ = pw.Close()
		}()
		begun := time.Now()
		lines := bufio.NewReader(pr)
		for i := range 3 {
			line, _ := lines.ReadString('\n')
			_, _ = lines.ReadString('\n')
			if want := []string{": open\n", ": alive\n", ": alive\n"}[i]; line != want || time.Since(begun) != time.Duration(i)*15*time.Second {
				t.Errorf("%v: %q", time.Since(begun), line)
			}
		}
		cancel()
		<-served
		_ = pr.Close()
	})
}

// pipeWriter answers into a pipe, unbuffered.
type pipeWriter struct {
	w      io.Writer
	header http.Header
}

func (p *pipeWriter) Header() http.Header         { return p.header }
func (p *pipeWriter) WriteHeader(int)             {}
func (p *pipeWriter) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p *pipeWriter) Flush()                      {}

func TestSubscriptionEndsWithItsClient(t *testing.T) {
	f := &fake{}
	srv := serve(t, gateway(f))
	ctx, cancel := context.WithCancel(t.Context())
	res := stream(t, ctx, srv.Client(), srv.URL)
	if f.subscribers() != 1 {
		t.Errorf("%d subscribers", f.subscribers())
	}
	cancel()
	res.Body.Close()
	srv.Close() // waits for the handlers
	if f.subscribers() != 0 {
		t.Errorf("%d subscribers are left", f.subscribers())
	}
}

func TestStalledClientHoldsNobodyUp(t *testing.T) {
	f := &fake{}
	srv := serve(t, gateway(f))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stalled := stream(t, ctx, srv.Client(), srv.URL) // and never reads
	defer stalled.Body.Close()
	quick, err := client.New(srv.URL, token, srv.Client()).Notices(ctx, mainKey)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 64<<10)
	for range 500 { // far more than socket buffers hold
		f.publish(goclaw.Notice{Kind: goclaw.NoticeText, Session: mainKey, Text: big})
		if n := <-quick; len(n.Text) != len(big) {
			t.Fatalf("%d bytes", len(n.Text))
		}
	}
	cancel()
	for range quick { //nolint:revive // until it has ended
	}
}

func TestRunEvents(t *testing.T) {
	run := worker("r1", mainKey)
	f := &fake{logs: map[string]goclaw.RunLog{"r1": {Run: run}}, follow: make(chan goclaw.Notice, 8)}
	f.follow <- goclaw.Notice{Kind: goclaw.NoticeEvent, RunID: "r1", Event: &goclaw.Event{Seq: 6, Kind: goclaw.EventWaiting, At: 1}}
	f.follow <- goclaw.Notice{Kind: goclaw.NoticeText, RunID: "r1", Text: "a\nb", Seq: 7}
	ended := goclaw.Run{ID: "r1", State: goclaw.StateCompleted}
	f.follow <- goclaw.Notice{Kind: goclaw.NoticeRun, RunID: "r1", Run: &ended}
	close(f.follow)
	w := ask(gateway(f), "GET", "/api/runs/r1/events?after=3", "", map[string]string{"Last-Event-ID": "5"})
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	blocks := strings.Split(w.Body.String(), "\n\n")
	if len(blocks) != 5 || !strings.HasPrefix(blocks[3], "event: end\ndata: {\"runId\":\"r1\"") {
		t.Fatalf("%q", blocks)
	}
	want := []string{
		": open",
		"id: 6\nevent: event\ndata: {\"seq\":6,\"kind\":\"waiting\",\"at\":1}",
		"event: text\ndata: {\"kind\":\"text\",\"session\":\"\",\"runId\":\"r1\",\"text\":\"a\\nb\",\"seq\":7}",
	}
	if diff := cmp.Diff(want, blocks[:3]); diff != "" {
		t.Error(diff)
	}
	for target, after := range map[string]int{"/api/runs/r1/events": -1, "/api/runs/r1/events?after=0": 0, "/api/runs/r1/events?after=9": 9} {
		f.follow = make(chan goclaw.Notice)
		close(f.follow)
		f.asked = nil
		ask(gateway(f), "GET", target, "", nil)
		if diff := cmp.Diff([]any{[]any{"r1", after}}, f.asked); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
	if w := ask(gateway(f), "GET", "/api/runs/nope/events", "", nil); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
	if w := ask(gateway(f), "GET", "/api/runs/r1/events", "", map[string]string{"Last-Event-ID": "x"}); w.Code != 400 || !strings.Contains(w.Body.String(), "Last-Event-ID") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestFollowingEndsWithItsClient(t *testing.T) {
	f := &fake{logs: map[string]goclaw.RunLog{"r1": {Run: worker("r1", mainKey)}}, follow: make(chan goclaw.Notice)}
	srv := serve(t, gateway(f))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/api/runs/r1/events", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	srv.Close() // waits for the handler, goleak for what it started
}
