package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

// What a call leaves is stored in the transaction that records its result.
func TestArtifactsComeWithTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &noting{Store: memory.Open()}
		leave := newTool("read_note", true, func(_ context.Context, in goclaw.Invocation) goclaw.ToolResult {
			res := goclaw.ToolOK("written")
			res.Artifacts = []goclaw.ArtifactData{{Name: "a.md", MediaType: "text/markdown", Data: []byte("of " + in.Fence.Run)}}
			return res
		})
		r := newRig(t, rigOptions{store: store, tools: []goclaw.Tool{leave}, brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if len(q.Messages) == 1 {
				return calls(goclaw.ToolCall{Name: "read_note", Arguments: `{}`})
			}
			return text("done")
		}})
		stop := r.start(t.Context())
		run := r.say("go")
		r.settle()
		stop()
		left, err := store.ArtifactsOf(t.Context(), goclaw.ArtifactFilter{})
		if err != nil || len(left) != 1 || left[0].Run != run.ID || left[0].Name != "a.md" {
			t.Fatal(left, err)
		}
		if data, err := store.Blob(t.Context(), left[0].SHA256); err != nil || string(data) != "of "+run.ID {
			t.Error(string(data), err)
		}
		if strings.Join(store.with, " ") != "result" {
			t.Errorf("stored with %v, want the result's event alone", store.with)
		}
		events, err := store.Events(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Result != nil && len(e.Result.Artifacts) > 0 {
				t.Error("the content is in the event as well")
			}
		}
	})
}

// noting notes which events come with artifacts.
type noting struct {
	*memory.Store
	with []string
}

func (s *noting) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	if len(b.Artifacts) > 0 {
		for _, e := range b.Events {
			s.with = append(s.with, string(e.Kind))
		}
	}
	return s.Store.Append(ctx, f, b)
}
