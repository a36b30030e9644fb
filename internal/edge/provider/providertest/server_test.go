package providertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw/internal/edge/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	anthropicPath = "/v1/messages"
	openAIPath    = "/v1/chat/completions"
)

// post sends body to s and returns status and reply.
func post(t *testing.T, s *providertest.Server, path, body string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	return recorder.Code, recorder.Body.String()
}

func serve(t *testing.T, script providertest.Script, opts ...providertest.Option) *providertest.Server {
	t.Helper()
	s := providertest.New(script, opts...)
	t.Cleanup(s.Close)
	return s
}

func TestWithoutStreaming(t *testing.T) {
	s := serve(t, func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Text: "hi", Thinking: "hm", Calls: []providertest.Call{{Name: "read", Arguments: `{"a":1}`}}}
	})
	for path, want := range map[string][]string{
		anthropicPath: {`"stop_reason":"tool_use"`, `"text":"hi"`, `"input":{"a":1}`, `"thinking":"hm"`, `"input_tokens":`},
		openAIPath:    {`"finish_reason":"tool_calls"`, `"content":"hi"`, `"arguments":"{\"a\":1}"`, `"reasoning_content":"hm"`, `"prompt_tokens":`},
	} {
		status, body := post(t, s, path, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
		if status != http.StatusOK || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", path, status, body)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %s in %s", path, w, body)
			}
		}
	}
}

func TestRefusesNonsense(t *testing.T) {
	s := serve(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{} })
	for _, body := range []string{
		"", "{", `{"messages":[]}`, `{"messages":{}}`, `{"messages":[{"role":"user","content":3}]}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":{}}`,
	} {
		for _, path := range []string{anthropicPath, openAIPath} {
			if status, reply := post(t, s, path, body); status != http.StatusBadRequest || !strings.Contains(reply, "invalid_request_error") {
				t.Errorf("%s %q: %d %s", path, body, status, reply)
			}
		}
	}
	for _, block := range []string{`{"type":"text","text":" "}`, `{"type":"tool_use","id":"x","name":"y","input":"z"}`, `{"type":"image"}`} {
		body := `{"messages":[{"role":"user","content":[` + block + `]}]}`
		if status, _ := post(t, s, anthropicPath, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d", block, status)
		}
	}
	if s.Total() != 0 {
		t.Errorf("%d requests were counted", s.Total())
	}
}

func TestModels(t *testing.T) {
	s := serve(t, nil)
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/models", nil))
	if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), `"id":"test-model"`) {
		t.Errorf("%d %s", recorder.Code, recorder.Body)
	}
}

// TestClose: stalled requests end, and a closed server refuses.
func TestClose(t *testing.T) {
	arrived := make(chan struct{}, 2)
	s := providertest.New(func(*providertest.Request) providertest.Answer {
		arrived <- struct{}{}
		return providertest.Answer{Text: "x", Delay: time.Hour}
	})
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+openAIPath, strings.NewReader(`{"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			ended <- err
			return
		}
		res, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		ended <- err
	}()
	<-arrived
	s.Close()
	s.Close()
	<-ended
	if status, _ := post(t, s, openAIPath, `{}`); status != http.StatusServiceUnavailable {
		t.Errorf("status %d after Close", status)
	}
}

const workerBody = `{"model":"m","messages":[{"role":"user","content":"[Subagent Context] depth 1/1\n[Subagent Task]: count \"all\" files"}]}`

func userBody(text string) string {
	raw, _ := json.Marshal(text)
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%s}]}`, raw)
}

func TestParseScript(t *testing.T) {
	script, err := providertest.ParseScript([]byte(`[
		{"match": {"role": "worker"}, "answer": {"text": "did: {{task}}", "calls": [{"name": "note", "arguments": {"about": "{{task}}"}}]}},
		{"match": {"hasToolResult": true}, "answer": {"text": "the tool said {{result}}"}},
		{"match": {"contains": ["red", "blue"], "not": "green"}, "answer": {"text": "purple"}},
		{"match": {"contains": "again", "nth": 2}, "answer": {"text": "second"}},
		{"match": {"contains": "again"}, "answer": {"text": "number {{n}}"}},
		{"match": {"anywhere": "secret"}, "answer": {"calls": [{"id": "c1", "name": "read", "arguments": "{broken"}]}},
		{"match": {"contains": "busy"}, "answer": {"fault": {"status": 529, "retryAfter": "3"}}}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, script)
	steps := []struct {
		body, want string
		status     int
	}{
		{workerBody, `did: count \"all\" files`, 200},
		{workerBody, `{\"about\": \"count \\\"all\\\" files\"}`, 200},
		{userBody("red and blue"), "purple", 200},
		{userBody("red, blue, green"), "no rule matches request 4", 400},
		{userBody("again"), "number 5", 200},
		{userBody("again"), "second", 200},
		{userBody("again"), "number 7", 200},
		{`{"messages":[{"role":"system","content":"secret"},{"role":"user","content":"x"}]}`, "{broken", 200},
		{userBody("busy"), "overloaded_error", 529},
		{`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"42"}]}`,
			"the tool said 42", 200},
	}
	for i, step := range steps {
		status, body := post(t, s, openAIPath, step.body)
		if status != step.status || !strings.Contains(body, step.want) {
			t.Errorf("step %d: %d %s, want %s", i+1, status, body, step.want)
		}
	}
}

func TestParseScriptErrors(t *testing.T) {
	for _, bad := range []string{
		"", "{}", `[{"mach":{}}]`, `[{"answer":{"txt":"x"}}]`, `[{"match":{"role":"boss"}}]`, `[null]`, `[] []`,
		`[{"match":{"contains":3}}]`, `[{"answer":{"fault":{"nope":1}}}]`,
	} {
		if _, err := providertest.ParseScript([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestRecording(t *testing.T) {
	key := func(r *providertest.Request) string { return r.Wire }
	s := serve(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{} }, providertest.WithKey(key))
	post(t, s, anthropicPath, userBody("a"))
	post(t, s, openAIPath, userBody("b"))
	post(t, s, openAIPath, userBody("c"))
	if s.Total() != 3 || s.Count("openai") != 2 || s.Count("anthropic") != 1 {
		t.Errorf("total %d", s.Total())
	}
	for i, r := range s.Requests() {
		if r.N != i+1 || r.Key != r.Wire || !bytes.Contains(r.Raw, []byte(r.NewestText())) || r.Worker() {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func ExampleParseScript() {
	script, err := providertest.ParseScript([]byte(`[{"answer": {"text": "You asked: {{task}}"}}]`))
	if err != nil {
		panic(err)
	}
	server := providertest.New(script, providertest.WithoutRecording())
	defer server.Close()

	recorder := httptest.NewRecorder()
	body := strings.NewReader(`{"model": "m", "messages": [{"role": "user", "content": "why?"}]}`)
	server.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", body))
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(recorder.Body).Decode(&reply); err != nil {
		panic(err)
	}
	fmt.Println(reply.Choices[0].Message.Content)
	// Output: You asked: why?
}

// TestAnswerForm: the server reads the form of the answer, and refuses what the
// real APIs refuse.
func TestAnswerForm(t *testing.T) {
	s := serve(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{Text: "{}"} })
	closed := `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"integer"}}}`
	openAI := func(name, strict, schema string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"` + name + `","strict":` + strict + `,"schema":` + schema + `}},"stop":["x"],"temperature":0.5`
	}
	anthropic := func(schema string) string {
		return `"output_config":{"format":{"type":"json_schema","schema":` + schema + `}},"stop_sequences":["x"],"temperature":0.5`
	}
	for _, c := range []struct {
		path, extra string
		status      int
	}{
		{openAIPath, openAI("answer", "true", closed), http.StatusOK},
		{openAIPath, openAI("answer", "false", `{"type":"object"}`), http.StatusOK},
		{openAIPath, openAI("answer", "true", `{"type":"object"}`), http.StatusBadRequest},
		{openAIPath, openAI("answer", "true", `{"type":"object","additionalProperties":false,"properties":{"a":{}}}`), http.StatusBadRequest},
		{openAIPath, openAI("an answer", "false", closed), http.StatusBadRequest},
		{openAIPath, openAI("answer", "false", `[]`), http.StatusBadRequest},
		{anthropicPath, anthropic(closed), http.StatusOK},
		{anthropicPath, anthropic(`{"type":"object"}`), http.StatusBadRequest},
		{anthropicPath, anthropic(`{"type":"object","additionalProperties":false,"properties":{"a":{"minimum":1}}}`), http.StatusBadRequest},
	} {
		status, reply := post(t, s, c.path, `{"messages":[{"role":"user","content":"x"}],`+c.extra+`}`)
		if status != c.status {
			t.Errorf("%s %s: %d %s", c.path, c.extra, status, reply)
		}
	}
	for _, r := range s.Requests() {
		if len(r.Schema) == 0 || len(r.Stop) != 1 || r.Temperature == nil || *r.Temperature != 0.5 {
			t.Errorf("%+v", r)
		}
	}
}
