package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/tool/memory"
	"goclaw/internal/edge/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake notes what it was asked.
type fake struct {
	asked  goclaw.MemoryQuery
	answer goclaw.MemoryAnswer
	err    error
}

func (f *fake) Search(_ context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error) {
	f.asked = q
	return f.answer, f.err
}

func (f *fake) Excerpt(_ context.Context, agent string, a goclaw.Access, path string, from, lines int) (goclaw.MemoryExcerpt, error) {
	f.asked = goclaw.MemoryQuery{Agent: agent, Access: a}
	return goclaw.MemoryExcerpt{Path: path, Line: from, Lines: lines, Of: 9, Text: "text"}, f.err
}

var berlin = time.FixedZone("Berlin", 3600)

func call(t *testing.T, f *fake, in goclaw.Invocation, name, arguments string) goclaw.ToolResult {
	t.Helper()
	for _, tool := range memory.Tools(f, workspace.Notes{}, berlin) {
		if tool.Spec().Name == name {
			if in.Call.ID == "" {
				in.Call.ID = "c1"
			}
			in.Call.Name, in.Call.Arguments = name, arguments
			return tool.Call(t.Context(), in)
		}
	}
	t.Fatalf("no tool %s", name)
	return goclaw.ToolResult{}
}

func byMain(dir string) goclaw.Invocation {
	return goclaw.Invocation{Session: goclaw.MainKey("main"), Fence: goclaw.Fence{Run: "r1"}, Profile: goclaw.Profile{Workspace: dir}}
}

func TestSpecs(t *testing.T) {
	tokens := 0
	names := memory.Names()
	for i, tool := range memory.Tools(nil, nil, berlin) {
		spec := tool.Spec()
		tokens += spec.Tokens()
		if !json.Valid(spec.Schema) || !spec.Idempotent || !strings.Contains(strings.Join(names, " "), spec.Name) {
			t.Errorf("%d %+v", i, spec)
		}
	}
	if tokens > 180 {
		t.Errorf("the tools take %d tokens of each request", tokens)
	}
}

func TestSearch(t *testing.T) {
	f := &fake{answer: goclaw.MemoryAnswer{Note: "slow", Hits: []goclaw.MemoryHit{
		{Source: goclaw.MemoryFiles, Path: "MEMORY.md", Line: 3, EndLine: 4, Score: 0.5, Snippet: "A > B\nText", At: goclaw.At(time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC))},
		{Path: "memory/a.md", Line: 1, EndLine: 1, Score: 0.25, Snippet: "x"},
	}}}
	got := call(t, f, byMain("/w"), "memory_search", `{"query":"who?","maxResults":3,"sources":["files"]}`)
	if want := `{"hits":[{"path":"MEMORY.md","lines":"3-4","score":0.5,"day":"2026-11-21","snippet":"A \u003e B\nText"},{"path":"memory/a.md","lines":"1-1","score":0.25,"snippet":"x"}],"note":"slow"}`; got.Content != want || got.IsError {
		t.Errorf("%+v", got)
	}
	if q := f.asked; q.Agent != "main" || q.Text != "who?" || q.Limit != 3 || len(q.Sources) != 1 || q.Now == 0 || q.Access.Session != goclaw.MainKey("main") {
		t.Errorf("%+v", q)
	}
	f.answer = goclaw.MemoryAnswer{}
	if got := call(t, f, byMain("/w"), "memory_search", `{"query":"x"}`); got.Content != `{"hits":[]}` {
		t.Errorf("%+v", got)
	}
	// What a worker may see is asked with its own access.
	worker := byMain("/w")
	worker.Session, worker.Profile.Strict = goclaw.SubagentKey("main", "w"), true
	call(t, f, worker, "memory_get", `{"path":"MEMORY.md"}`)
	if a := f.asked.Access; a.Session != worker.Session || !a.Strict {
		t.Errorf("%+v", a)
	}
	for err, want := range map[error]string{
		goclaw.BadRequest("private"): `{"status":"error","error":"private"}`,
		errors.New("disk full"):      "memory can't be searched now: disk full",
	} {
		f.err = err
		for _, c := range [][2]string{{"memory_search", `{"query":"x"}`}, {"memory_get", `{"path":"x"}`}} {
			if got := call(t, f, byMain("/w"), c[0], c[1]); got.Content != want || !got.IsError || got.Again != nil {
				t.Errorf("%s: %+v", c[0], got)
			}
		}
	}
}

func TestGet(t *testing.T) {
	got := call(t, &fake{}, byMain("/w"), "memory_get", `{"path":"memory/a.md","from":3,"lines":2}`)
	if got.Content != `{"path":"memory/a.md","line":3,"lines":2,"of":9,"text":"text"}` || got.IsError {
		t.Errorf("%+v", got)
	}
}

// A note goes to the day of the call in the person's zone, once for each call.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	in := byMain(dir)
	in.Since = goclaw.At(time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC))
	for _, c := range [][2]string{{"c1", "Ann likes tea."}, {"c1", "Ann likes tea."}, {"c2", "Bob, too. "}} {
		in.Call.ID = c[0]
		args, err := json.Marshal(map[string]string{"text": c[1]})
		if err != nil {
			t.Fatal(err)
		}
		if got := call(t, &fake{}, in, "memory_write", string(args)); got.Content != `{"path":"memory/2026-11-21.md"}` || got.IsError {
			t.Errorf("%+v", got)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory/2026-11-21.md"))
	if err != nil || strings.Count(string(text), "Ann likes tea.\n") != 1 || !strings.Contains(string(text), "Bob, too.\n") {
		t.Errorf("%q, %v", text, err)
	}
	for args, want := range map[string]string{
		`{"text":" "}`:       "text is empty",
		`{"text":"a\u0000"}`: "bytes that are no text",
		`{"text":"` + strings.Repeat("x", 20_001) + `"}`: "a note at most",
	} {
		if got := call(t, &fake{}, in, "memory_write", args); !got.IsError || !strings.Contains(got.Content, want) {
			t.Errorf("%.40s: %+v", args, got)
		}
	}
	// Neither a strict worker nor one that a person lets see everything writes.
	for _, strict := range []bool{true, false} {
		worker := in
		worker.Session, worker.Profile.Strict, worker.Profile.Inherit = goclaw.SubagentKey("main", "w"), strict, []string{"memory"}
		worker.Call.ID = "c9"
		if got := call(t, &fake{}, worker, "memory_write", `{"text":"mine"}`); !got.IsError || !strings.Contains(got.Content, "only the main agent") {
			t.Errorf("%+v", got)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "memory/2026-11-21.md")); err != nil || string(after) != string(text) {
		t.Errorf("%q, %v", after, err)
	}
}
