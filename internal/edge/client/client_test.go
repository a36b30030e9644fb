package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a handler that always gives the same answer.
func answer(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name    string
		handler http.Handler
		want    string
		is      error
	}{
		{"problem", answer(409, "application/problem+json", `{"title":"Conflict","detail":"it\nhas ended"}`), "read status: it has ended", goclaw.ErrEnded},
		{"title only", answer(503, "application/problem+json", `{"title":"Service Unavailable"}`), "read status: Service Unavailable", nil},
		{"not found", answer(404, "application/problem+json", `{"detail":"run x: not found"}`), "read status: run x: not found", goclaw.ErrNotFound},
		{"another server", answer(502, "text/html", "<h1>"), "read status: the server answered HTTP 502 Bad Gateway", nil},
		{"broken problem", answer(500, "application/problem+json", "{"), "read status: the server answered HTTP 500 Internal Server Error", nil},
		{"redirect", http.RedirectHandler("http://evil.example/", http.StatusFound), "read status: the server answered HTTP 302 Found", nil},
		{"no JSON", answer(200, "text/html", "<h1>"), "read status: unreadable answer: invalid character '<' looking for beginning of value", nil},
	} {
		_, err := client.InProcess(tc.handler, "x").Status(t.Context())
		if err == nil || err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	_, err := client.InProcess(answer(401, "application/problem+json", `{"detail":"no"}`), "x").Status(t.Context())
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 401 || !strings.Contains(e.Detail, "GOCLAW_TOKEN") {
		t.Error(err)
	}
}

func TestNoGateway(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	err := client.New(srv.URL, "x", srv.Client()).Health(t.Context())
	if !errors.Is(err, client.ErrNoGateway) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.New(srv.URL, "x", srv.Client()).Health(gone); errors.Is(err, client.ErrNoGateway) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNoticesEndWithTheStream(t *testing.T) {
	c := client.InProcess(answer(200, "text/event-stream", ": open\n\nevent: text\ndata: {\"kind\":\"text\",\"text\":\"a\"}\n\ndata: not JSON\n\ndata:{\"kind\":\"lag\"}\n\n"), "x")
	notices, err := c.Notices(t.Context(), goclaw.SessionKey{})
	if err != nil {
		t.Fatal(err)
	}
	var got []goclaw.NoticeKind
	for n := range notices {
		got = append(got, n.Kind)
	}
	if fmt.Sprint(got) != "[text lag]" {
		t.Error(got)
	}
}

func ExampleInProcess() {
	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"version":"`+r.Header.Get("Authorization")+`"}`)
	})
	status, err := client.InProcess(gateway, "secret").Status(context.Background())
	fmt.Println(status.Version, err)
	// Output: Bearer secret <nil>
}
