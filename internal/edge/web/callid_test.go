package web_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"goclaw/internal/edge/web"
)

func TestCallIDLeadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "run")).String()
		reply, id := rapid.IntRange(1, 9999).Draw(t, "reply"), rapid.String().Draw(t, "id")
		given := web.CallID(run, reply, id)
		if !clientID.MatchString(given) {
			t.Fatalf("%q", given)
		}
		if gotRun, gotReply, ok := web.ParseCallID(given); !ok || gotRun != run || gotReply != reply {
			t.Fatalf("%q leads to %s, %d, %v", given, gotRun, gotReply, ok)
		}
		if other := rapid.String().Draw(t, "other"); other != id && web.CallID(run, reply, other) == given {
			t.Fatalf("%q and %q are both %s", id, other, given)
		}
	})
}

func TestForeignCallIDsLeadNowhere(t *testing.T) {
	for _, id := range []string{"", "call_", "call_abc", "call_a_b", "call_a_0_x", "call_a_1_", "call__1_x", "toolu_1_2_3", "call_a_-1_x"} {
		if run, reply, ok := web.ParseCallID(id); ok {
			t.Errorf("%q leads to %s, %d", id, run, reply)
		}
	}
}

// FuzzOpenAIRequests: whatever is asked is answered, or refused.
func FuzzOpenAIRequests(f *testing.F) {
	f.Add(true, `{"model":"goclaw","messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","tool_calls":[{"id":"call_run-1_1_x","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_run-1_1_x","content":"y"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	f.Add(false, `{"model":"goclaw","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"y"},{"type":"item_reference","id":"msg_run-1_0"}],"previous_response_id":"resp_run-1_0"}`)
	f.Add(false, `{"model":"goclaw","input":"x","stream":true,"tool_choice":"none","parallel_tool_calls":false}`)
	h := gateway(&fake{})
	f.Fuzz(func(t *testing.T, chat bool, body string) {
		path := "/v1/responses"
		if chat {
			path = "/v1/chat/completions"
		}
		if w := ask(h, "POST", path, body, nil); w.Code >= http.StatusInternalServerError {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
