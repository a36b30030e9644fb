package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/edge/client"
)

func TestBadRequestsStayWhatTheyAre(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		c := connect(gateway(&fake{fail: goclaw.BadRequest(`no agent "x" is configured`)}))
		_, err := c.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: "hi"})
		if !goclaw.IsBadRequest(err) || err.Error() != `send message: no agent "x" is configured` {
			t.Error(err)
		}
		_, err = c.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: strings.Repeat("a", 5<<20)})
		if !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "larger than") {
			t.Error(err)
		}
		c = connect(gateway(&fake{fail: errBroken}))
		if _, err := c.Status(t.Context()); goclaw.IsBadRequest(err) {
			t.Error(err)
		}
	})
	h := gateway(&fake{fail: goclaw.BadRequest("too long")})
	w := ask(h, "POST", "/v1/chat/completions", `{"model":"goclaw","messages":[{"role":"user","content":"hi"}]}`, nil)
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"message":"too long","type":"invalid_request_error"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// When the server's base context ends, what waits ends at once and says why; a
// stream does not look complete.
func TestStopEndsWhatWaits(t *testing.T) {
	waiting := make(chan struct{}, 2)
	f := &fake{await: func(ctx context.Context, _ string, _ bool) (goclaw.Outcome, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		return goclaw.Outcome{}, context.Cause(ctx)
	}}
	base, stop := context.WithCancelCause(t.Context())
	srv := httptest.NewUnstartedServer(gateway(f))
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	defer srv.Close()
	c := client.New(srv.URL, token, srv.Client())

	notices, err := c.Notices(t.Context(), mainKey)
	if err != nil {
		t.Fatal(err)
	}
	awaited := make(chan error)
	go func() {
		_, err := c.Await(t.Context(), "run-1", true)
		awaited <- err
	}()
	streamed := make(chan string)
	go func() { streamed <- completion(t, srv) }()
	<-waiting
	<-waiting
	stop(errors.New("stopping"))
	err = <-awaited
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 503 || !strings.Contains(e.Detail, "the gateway is stopping") {
		t.Errorf("await: %v", err)
	}
	if got := <-streamed; !strings.Contains(got, `"code":"stopping"`) || strings.Contains(got, "[DONE]") {
		t.Errorf("stream: %s", got)
	}
	for n := range notices {
		t.Errorf("notice %+v", n)
	}
}

// completion asks for a streamed completion and returns all of the stream.
func completion(t *testing.T, srv *httptest.Server) string {
	body := `{"model":"goclaw","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}

// In memory, the end of a caller's own context is not the gateway's.
func TestCallersOwnEndIsNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{await: func(ctx context.Context, _ string, _ bool) (goclaw.Outcome, error) {
			<-ctx.Done()
			return goclaw.Outcome{}, context.Cause(ctx)
		}}
		mine := errors.New("mine")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		if _, err := client.InProcess(gateway(f), token).Await(ctx, "run-1", false); !errors.Is(err, mine) {
			t.Error(err)
		}
	})
}
