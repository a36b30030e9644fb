package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func TestSessionsByPages(t *testing.T) {
	f := &fake{history: map[goclaw.SessionKey][]goclaw.RunLog{}}
	for i := range 5 {
		f.history[goclaw.APIKey("main", fmt.Sprint(i))] = nil
	}
	// The fake's order changes from call to call: one page holds all but the first.
	list := func(query string) (keys []string) {
		w := ask(gateway(f), "GET", "/api/sessions"+query, "", nil)
		var sessions []goclaw.Session
		if err := json.Unmarshal(w.Body.Bytes(), &sessions); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		for _, s := range sessions {
			keys = append(keys, s.Key.String())
		}
		return keys
	}
	if got := list("?limit=2"); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := list(""); len(got) != 5 {
		t.Errorf("%q", got)
	}
	f.history = map[goclaw.SessionKey][]goclaw.RunLog{mainKey: nil}
	if got := list("?before=agent:main:main"); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if w := ask(gateway(f), "GET", "/api/sessions?before=agent:main:api:user:x", "", nil); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

func TestRunsByPages(t *testing.T) {
	f := &fake{}
	ask(gateway(f), "GET", "/api/runs?before=77&limit=5&root=r", "", nil)
	if diff := cmp.Diff([]any{goclaw.RunFilter{Before: 77, Limit: 5, Root: "r"}}, f.asked); diff != "" {
		t.Error(diff)
	}
}

func TestDefinitionsAndReset(t *testing.T) {
	f := &fake{}
	h := gateway(f)
	for target, status := range map[string]int{
		"/api/definitions": 200, "/api/definitions/one?agent=coder": 200, "/api/definitions/two": 404,
	} {
		if w := ask(h, "GET", target, "", nil); w.Code != status {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	w := ask(h, "POST", "/api/sessions/agent:main:main/reset", "", nil)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"resetAt":3`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, want := range []any{[2]string{"definitions", "main"}, [3]string{"definition", "coder", "one"}, [2]string{"reset", "agent:main:main"}} {
		found := false
		for _, got := range f.asked {
			found = found || cmp.Equal(got, want)
		}
		if !found {
			t.Errorf("%v was not asked: %v", want, f.asked)
		}
	}
}

func TestAKeyOfAnotherRequest(t *testing.T) {
	f := &fake{fail: goclaw.ErrReused}
	for target, body := range map[string]string{
		"/api/messages": `{"session":"agent:main:main","text":"x"}`, "/api/runs": `{"task":"t"}`, "/api/flows": `{"flow":"x"}`,
	} {
		w := ask(gateway(f), "POST", target, body, map[string]string{"Idempotency-Key": "k"})
		if w.Code != 422 || !strings.Contains(w.Body.String(), `"param":"Idempotency-Key"`) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	digests := map[string]bool{}
	f = &fake{}
	for _, body := range []string{`{"task":"a"}`, ` {"task": "a"}`, `{"task":"b"}`, `{"task":"a","label":"l"}`} {
		ask(gateway(f), "POST", "/api/runs", body, map[string]string{"Idempotency-Key": "k"})
		digests[f.asked[len(f.asked)-1].([]any)[1].(goclaw.SpawnRequest).Digest] = true
	}
	if len(digests) != 3 || digests[""] {
		t.Errorf("%v", digests)
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	h := gateway(&fake{})
	for _, tc := range []struct {
		target, body, media string
		status              int
		says                string
	}{
		{"/api/runs", `{"task":"a","task":"b"}`, "", 400, "given twice"},
		{"/api/runs", "{\"task\":\"\xff\"}", "", 400, "UTF-8"},
		{"/api/runs", `{"task":null}`, "", 400, `"pointer":"/task"`},
		{"/api/runs", `{"TASK":"a","task":"b"}`, "", 400, "TASK"},
		{"/api/runs", `{"task":"a","cleanup":"sell"}`, "", 400, `"pointer":"/cleanup"`},
		{"/api/runs", `{"task":"a","timeoutSeconds":1e30}`, "", 400, "timeoutSeconds"},
		{"/api/runs", `{"task":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "", 400, "no valid request"},
		{"/api/runs", `null`, "", 400, "JSON object"},
		{"/api/runs", `task=a`, "application/x-www-form-urlencoded", 415, "application/json"},
		{"/api/runs", `{"task":"a"}`, "text/plain", 415, "application/json"},
		{"/api/runs", `{"task":"a"}`, "application/json; charset=utf-8", 202, ""},
		{"/api/runs/r1/cancel", "", "text/plain", 404, ""},
		{"/api/flows", `{"flow":""}`, "", 400, `"pointer":"/flow"`},
	} {
		w := ask(h, "POST", tc.target, tc.body, map[string]string{"Content-Type": tc.media})
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%.60s: %d %s; want %d with %s", tc.body, w.Code, w.Body, tc.status, tc.says)
		}
	}
	for _, path := range []string{"/api/runs", "/v1/chat/completions", "/v1/responses"} {
		for encoding, status := range map[string]int{"gzip": 415, "identity": 400} {
			w := ask(h, "POST", path, `{"x":1}`, map[string]string{"Content-Encoding": encoding})
			if w.Code != status || status == 415 && !strings.Contains(w.Body.String(), "Content-Encoding") {
				t.Errorf("%s %s: %d %s", path, encoding, w.Code, w.Body)
			}
		}
	}
}
