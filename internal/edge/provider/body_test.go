package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
	"weak"
)

// A request's bytes are not held while a model thinks.
func TestBodyIsLetGoWhileTheReplyIsUnderWay(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != 1<<20 {
			t.Errorf("the server got %d bytes (%v)", n, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	client := Client(nil)
	defer client.CloseIdleConnections()
	res, sent := begin(t, client, server.URL)
	defer res.Body.Close()
	for range 1000 {
		if sent.Value() == nil {
			return
		}
		runtime.GC()
	}
	t.Error("the bytes are still held")
}

// begin sends 1 MB through a watch, as the SDKs do, and returns the reply that
// has begun.
func begin(t *testing.T, client *http.Client, url string) (*http.Response, weak.Pointer[byte]) {
	t.Helper()
	data := make([]byte, 1<<20)
	sent := weak.Make(&data[0])
	ctx, cancel := context.WithCancelCause(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	line := Line{Provider: "test", Idle: time.Hour}
	res, err := line.Watch(cancel).Do(req, client.Do)
	if err != nil {
		t.Fatal(err)
	}
	return res, sent
}

func TestBodyCanBeReadAgainUntilItIsForgotten(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1", bytes.NewReader([]byte("hello")))
	if err != nil {
		t.Fatal(err)
	}
	sent := sendOnce(req)
	read := func(r io.Reader) string {
		t.Helper()
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	again, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if got := read(req.Body) + read(again); got != "hellohello" {
		t.Errorf("read %q", got)
	}
	sent.forget()
	if _, err := req.GetBody(); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("after it was forgotten: %v", err)
	}
	if err := errors.Join(again.Close(), again.Close()); err != nil {
		t.Error(err)
	}
	if _, err := again.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("after it was closed: %v", err)
	}
}
