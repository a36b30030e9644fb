package redact_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"goclaw/internal/edge/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "canary-7fb2c1d09e8a4466aa71"

func TestText(t *testing.T) {
	var r redact.Redactor
	r.Add("", "short", key, "canary-7fb2c1d09e8a4466aa71-and-longer")
	for _, tc := range []struct{ in, out string }{
		{"", ""},
		{"nothing to hide", "nothing to hide"},
		{"short words stay", "short words stay"},
		{"key " + key + ".", "key [secret]."},
		{key + key, "[secret][secret]"},
		{"longer: " + key + "-and-longer", "longer: [secret]"},
		{"Incorrect key: canary-7****aa71", "Incorrect key: [secret]****aa71"},
		{"it begins with canary-7fb2c1 they say", "it begins with [secret] they say"},
		{"it ends with ...4466aa71", "it ends with ...[secret]"},
		{"it ends with 8a4466aa71!", "it ends with [secret]!"},
		{"a canary-7 is a bird", "a [secret] is a bird"}, // eight characters are enough
		{"a canary is a bird", "a canary is a bird"},
		// Unknown ones, by their form
		{"Incorrect API key provided: sk-proj-ab12*****************wxyz. You can", "Incorrect API key provided: [secret] You can"},
		{"sk-ant-api03-AAAAbbbbCCCC", "[secret]"},
		{"task-force sk-i", "task-force sk-i"},
		{"Authorization: Bearer abcdef0123456789", "Authorization: Bearer [secret]"},
		{"proxy-authorization: basic dXNlcjpwYXNz", "proxy-authorization: basic [secret]"},
		{"dial postgres://me:hunter2@db:5432/x failed", "dial postgres://me:[secret]@db:5432/x failed"},
		{"see https://example.com:8080/a@b", "see https://example.com:8080/a@b"},
		{"http://127.0.0.1:7717/login?code=Ab_-9", "http://127.0.0.1:7717/login?code=[secret]"},
		{"Cookie: goclaw-7717=AAAAAAAAAAAAAAAAAAAAAAAA; a=b", "Cookie: goclaw-7717=[secret]; a=b"},
		{"ghp_0123456789abcdefghij01 AIzaSyA0123456789abcdefghij", "[secret] [secret]"},
		{"eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "[secret]"},
		{"AKIAIOSFODNN7EXAMPLE", "[secret]"},
	} {
		if got := r.Text(tc.in); got != tc.out {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.out)
		}
	}
	var none *redact.Redactor
	if got := none.Text("Bearer abcdef0123456789"); got != "Bearer [secret]" {
		t.Errorf("without secrets: %q", got)
	}
}

// No known secret, and no long part of one, survives in any text.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r redact.Redactor
		secret := rapid.StringMatching(`[A-Za-z0-9_\-]{16,64}`).Draw(t, "secret")
		r.Add(secret)
		around := rapid.StringMatching(`[ -~]{0,30}`)
		from := rapid.IntRange(0, len(secret)-8).Draw(t, "from")
		pieces := []string{secret, secret[:rapid.IntRange(8, len(secret)).Draw(t, "to")], secret[from:]}
		got := r.Text(around.Draw(t, "a") + rapid.SampledFrom(pieces).Draw(t, "piece") + around.Draw(t, "b"))
		if strings.Contains(got, secret) || strings.Contains(got, secret[:8]) || strings.Contains(got, secret[len(secret)-8:]) {
			t.Fatalf("left in %q", got)
		}
	})
}

type printsItself struct{ inner string }

func TestHandler(t *testing.T) {
	var r redact.Redactor
	var out bytes.Buffer
	for _, next := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(r.Handler(next)).With("with", key).WithGroup("g")
		r.Add(key)
		log = log.With("later", "x"+key)
		log.Info("said "+key, "text", key, "err", fmt.Errorf("call: %w", errors.New(key)), "n", 1, "any", printsItself{key}, "list", []string{key},
			"bytes", []byte(key), slog.Group("more", "inner", key), "by", slog.AnyValue(&r))
		log.Log(context.Background(), slog.LevelDebug, key)
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || strings.Count(text, key) != 1 { // before it was known
		t.Errorf("%s", text)
	}
}

func TestLearningMeanwhile(t *testing.T) {
	var r redact.Redactor
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				secret := fmt.Sprintf("secret-number-%d-%d", i, n)
				r.Add(secret)
				if got := r.Text("x " + secret); strings.Contains(got, secret) {
					t.Errorf("%q", got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkText(b *testing.B) {
	var r redact.Redactor
	r.Add(key, strings.Repeat("ab12", 16), strings.Repeat("xy_9", 12))
	b.ReportAllocs()
	for b.Loop() {
		r.Text("the run 0198-77aa ended as completed after 1200 ms in session agent:main:main")
	}
}
