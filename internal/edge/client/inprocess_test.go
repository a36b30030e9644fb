package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// get makes one request to h in memory.
func get(ctx context.Context, h http.HandlerFunc) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/a%2Fb?c=d", strings.NewReader("body"))
	if err != nil {
		return nil, err
	}
	return InProcess(h, "").http.Do(req)
}

func TestInProcessRequestLooksServed(t *testing.T) {
	res, err := get(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", strings.Join([]string{r.Method, r.Host, r.RequestURI, string(body)}, " "))
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Late", "x")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("X-Seen"); got != "POST localhost /a%2Fb?c=d body" {
		t.Error(got)
	}
	if res.StatusCode != http.StatusTeapot || res.Header.Get("X-Late") != "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}

func TestInProcessFirstByteBeforeTheEnd(t *testing.T) {
	more, ended := make(chan struct{}), make(chan struct{})
	res, err := get(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "a")
		<-more
		_, _ = io.WriteString(w, "b")
	})
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, first); err != nil || first[0] != 'a' {
		t.Errorf("%q, %v", first, err)
	}
	select {
	case <-ended:
		t.Error("the handler has ended already")
	default:
	}
	close(more)
	if rest, err := io.ReadAll(res.Body); string(rest) != "b" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	res.Body.Close()
	res.Body.Close()
}

func TestInProcessCancel(t *testing.T) {
	why := errors.New("enough")
	for _, begun := range []bool{false, true} {
		entered, ended := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-entered
			cancel(why)
		}()
		res, err := get(ctx, func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			if begun {
				w.WriteHeader(http.StatusOK)
			}
			close(entered)
			<-r.Context().Done()
		})
		if begun && err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if !errors.Is(err, why) {
			t.Errorf("begun %v: %v", begun, err)
		}
		<-ended
	}
}

func TestInProcessCloseEndsTheHandler(t *testing.T) {
	ended := false
	res, err := get(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "more")
		}
		ended = true
	})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if !ended {
		t.Error("Close did not wait")
	}
}

func TestInProcessPanic(t *testing.T) {
	if _, err := get(t.Context(), func(http.ResponseWriter, *http.Request) { panic("oops") }); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Error(err)
	}
	res, err := get(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
