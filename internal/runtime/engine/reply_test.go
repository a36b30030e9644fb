package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

// A reply tag says, on its way out only, which message is answered: nobody
// sees it. What a worker says is left alone.
func TestReplyTag(t *testing.T) {
	for name, c := range map[string]struct{ said, result, sent string }{
		"none":           {"hello", "hello", "hello"},
		"current":        {"[[reply_to_current]] hello", "hello", "[[reply_to:msg-7]]hello"},
		"another":        {"[[ reply_to: 3 ]]\nhello", "hello", "[[reply_to:3]]hello"},
		"later":          {"hello [[reply_to_current]]", "hello [[reply_to_current]]", "hello [[reply_to_current]]"},
		"silent":         {"[[reply_to_current]] NO_REPLY", "NO_REPLY", ""},
		"nothing but it": {"[[reply_to_current]]", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.Open()
				r := newRig(t, rigOptions{store: store, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text(c.said) }})
				stop := r.start(t.Context())
				ann := goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "post", PeerKind: "direct", Peer: "ann"}
				if _, err := r.engine.Submit(t.Context(), goclaw.Inbound{Session: ann, Text: "hi", MessageID: "msg-7"}); err != nil {
					t.Error(err)
				}
				run := r.settle()[0]
				stop()
				var sent string
				due, err := store.Outbox(t.Context(), goclaw.At(run.FinishedAt.Time())+1, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range due {
					sent += o.Text
				}
				if run.Result != c.result || sent != c.sent {
					t.Errorf("result %q, sent %q; want %q, %q", run.Result, sent, c.result, c.sent)
				}
				var streamed strings.Builder
				for _, n := range r.notices {
					if n.Kind == goclaw.NoticeText {
						streamed.WriteString(n.Text)
					}
				}
				if streamed.String() != c.result {
					t.Errorf("streamed %q, want %q", streamed.String(), c.result)
				}
			})
		})
	}
}

func TestWorkersKeepTheirBrackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const said = "[[reply_to_current]] is how one answers"
		r := newRig(t, rigOptions{brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			switch last := lastText(q); {
			case isWorker(q):
				return text(said)
			case strings.Contains(last, "[Subagent:"), len(q.Messages) > 1:
				return text("fine")
			}
			return calls(spawnCall("w"))
		}})
		defer r.start(t.Context())()
		r.say("go")
		var results []string
		for _, run := range r.settle() {
			results = append(results, run.Result)
		}
		if diff := cmp.Diff([]string{"fine", said, "fine"}, results); diff != "" {
			t.Error(diff)
		}
	})
}
