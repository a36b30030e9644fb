package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
)

// A summary that the provider refuses, or that breaks off, neither stops the
// session nor loses what was said.
func TestSummaryThatIsRefused(t *testing.T) {
	refuse := func(status int, kind, message string) func() (goclaw.ModelReply, error) {
		return func() (goclaw.ModelReply, error) {
			return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: status, Kind: kind, Message: message}
		}
	}
	for name, tc := range map[string]struct {
		summary func() (goclaw.ModelReply, error)
		begins  []string // what the last request begins with
		warning string
	}{
		"too long": {
			refuse(200, "context_length", "this is too much"),
			[]string{"No model wrote this summary", "Asked: turn 4 so"}, "",
		},
		"for another reason": {
			refuse(400, "invalid_request_error", "no way"),
			[]string{"turn 0 so"}, "the conversation was not shortened, and goes on as it is: compact the conversation: fake: HTTP 400 invalid_request_error: no way",
		},
		"cut": {
			func() (goclaw.ModelReply, error) {
				reply, err := text("<notes>\n</notes>\n<summary>\nDecisions: take the")
				reply.Stop = goclaw.StopMaxTokens
				return reply, err
			},
			[]string{"Decisions: take the\n\n(No model wrote this summary", "Asked: turn 4 so"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tried := 0
				r := newRig(t, rigOptions{rules: compacting(3000, 500), brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
					if isCompaction(q) {
						tried++
						return tc.summary()
					}
					return reading(ctx, q)
				}})
				defer r.start(t.Context())()
				for i := range 6 {
					r.say(fmt.Sprintf("turn %d %s", i, strings.Repeat("so ", 900)))
					for _, run := range r.settle() {
						if run.State != goclaw.StateCompleted {
							t.Fatalf("%s %s", run.State, run.Error)
						}
					}
				}
				asked := r.asked(false)
				first := asked[len(asked)-1].Messages[0].PlainText()
				for _, want := range tc.begins {
					if tried == 0 || !strings.Contains(first, want) {
						t.Errorf("after %d tries, %q is not in %.1000s", tried, want, first)
					}
				}
				var warned string
				for _, n := range r.heard() {
					if n.Kind == goclaw.NoticeWarning {
						warned = n.Text
					}
				}
				if warned != tc.warning {
					t.Errorf("warned: %q", warned)
				}
			})
		})
	}
}

// One message that is larger than the window fails its own turn and no other,
// though every request that holds it is refused, those for a summary too.
func TestMessageLargerThanTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 30_000 // bytes
		r := newRig(t, rigOptions{rules: compacting(120_000, 400), brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if len(bytesOf(q)) > window {
				return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: 400, Kind: "context_length", Message: "prompt is too long"}
			}
			return reading(ctx, q)
		}})
		defer r.start(t.Context())()
		for _, say := range []string{"hello", "huge " + strings.Repeat("x", 2*window), "are you there?", "and now?"} {
			r.say(say)
			runs := r.settle()
			last := runs[len(runs)-1]
			if want := goclaw.StateFailed; strings.HasPrefix(say, "huge") != (last.State == want) {
				t.Fatalf("%.10s: %s %s", say, last.State, last.Error)
			}
		}
		asked := r.asked(false)
		if all := bytesOf(asked[len(asked)-1]); !strings.Contains(all, "Asked: huge xxx") || !strings.Contains(all, "are you there?") {
			t.Errorf("%.2000s", all)
		}
	})
}
