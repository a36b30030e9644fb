package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/openai"
)

func TestEmbed(t *testing.T) {
	var asked struct {
		Model          string
		Input          []string
		EncodingFormat string `json:"encoding_format"`
	}
	answer, status, calls := "", 200, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer sk-secret-key" {
			t.Errorf("%s %s", r.URL, r.Header)
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	e := openai.NewEmbedder(openai.Options{Name: "local", APIKey: "sk-secret-key", BaseURL: server.URL, HTTPClient: client}, "small")
	if e.Model() != "local/small" {
		t.Error(e.Model())
	}
	answer = `{"object":"list","data":[{"index":1,"embedding":[0.5,2]},{"index":0,"embedding":[1,0]}],"model":"small","usage":{"prompt_tokens":1,"total_tokens":1}}`
	got, err := e.Embed(t.Context(), []string{"a", "b"})
	if err != nil || len(got) != 2 || got[0][0] != 1 || got[1][1] != 2 || asked.Model != "small" || len(asked.Input) != 2 || asked.EncodingFormat != "float" {
		t.Errorf("%v, %v, %+v", got, err, asked)
	}
	for name, tt := range map[string]struct {
		status       int
		answer, want string
		calls        int
	}{
		"a missing one":   {200, `{"data":[{"index":0,"embedding":[1]}]}`, "vectors for 1 of 2 texts", 1},
		"an index beyond": {200, `{"data":[{"index":7,"embedding":[1]}]}`, "a vector for no text", 1},
		"other lengths":   {200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, "of different lengths", 1},
		"no JSON":         {200, `{"data":`, "local: ", 1},
		"a refusal":       {401, `{"error":{"message":"bad key sk-secret-key","type":"invalid_request_error"}}`, "HTTP 401 ", 1},
		"overload":        {503, `{"error":{"message":"overloaded","type":"server_error"}}`, "HTTP 503 ", 3},
	} {
		answer, status, calls = tt.answer, tt.status, 0
		_, err := e.Embed(t.Context(), []string{"a", "b"})
		var failed *goclaw.ProviderError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") || calls != tt.calls {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("too late"))
	defer cancel()
	if _, err := e.Embed(ctx, []string{"a"}); err == nil || !strings.Contains(err.Error(), "too late") {
		t.Error(err)
	}
	server.Close()
	if _, err := e.Embed(t.Context(), []string{"a"}); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "network") {
		t.Error(err)
	}
}
