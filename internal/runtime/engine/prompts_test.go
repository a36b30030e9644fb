package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/runtime/engine"
)

// rewriter is a person's hook.
type rewriter func(session goclaw.SessionKey, sections []goclaw.Section) []goclaw.Section

func (r rewriter) Rewrite(_ context.Context, session goclaw.SessionKey, _ goclaw.Profile, sections []goclaw.Section) ([]goclaw.Section, error) {
	return r(session, sections), nil
}

// A hook whose answer changes from turn to turn spoils the cache, and the
// person is told by which section; one that differs between sessions does not.
func TestUnsteadyHook(t *testing.T) {
	times := 0
	house := func(text string) goclaw.Section { return goclaw.Section{ID: "house", Text: text} }
	for name, tc := range map[string]struct {
		hook rewriter
		want string
	}{
		"steady": {func(key goclaw.SessionKey, s []goclaw.Section) []goclaw.Section {
			return append(s[:3:3], house(key.String()))
		}, ""},
		"added": {func(_ goclaw.SessionKey, s []goclaw.Section) []goclaw.Section {
			times++
			return append(s[:2:2], house(fmt.Sprint(times)), s[2])
		}, "house"},
		"sometimes": {func(_ goclaw.SessionKey, s []goclaw.Section) []goclaw.Section {
			times++
			return s[:2+times/2%2]
		}, "safety"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWired(t, providertest.WireAnthropic, func(*providertest.Request) providertest.Answer { return providertest.Answer{Text: "ok"} },
				func(o *engine.Options) { o.Rewriter = tc.hook })
			for i := range 4 {
				for _, key := range []goclaw.SessionKey{goclaw.MainKey("main"), goclaw.APIKey("main", "ann")} {
					p, err := w.engine.Explain(t.Context(), goclaw.ContextQuery{Session: key})
					if err != nil {
						t.Fatal(err)
					}
					want := ""
					if tc.want != "" && i > 0 {
						want = "context.hook answers differently each time, from section " + tc.want + " on, so no provider reads that from its cache; have it answer equal requests equally"
					}
					if got := strings.Join(p.Warnings, "; "); got != want {
						t.Errorf("turn %d of %s: warned: %q", i, key, got)
					}
				}
			}
		})
	}
}
