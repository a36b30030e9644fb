package artifact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/tool/artifact"
)

var mainKey = goclaw.MainKey("main")

// bench is the tools on a memory store, with runs under way.
type bench struct {
	*testing.T
	store *memory.Store
	now   goclaw.Millis
	runs  map[string]goclaw.Run
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, store: memory.Open(), now: 1000, runs: map[string]goclaw.Run{}}
}

// begin starts a run; id is its whole id.
func (b *bench) begin(id string, session goclaw.SessionKey, change func(*goclaw.Run)) {
	b.Helper()
	r := goclaw.Run{ID: id, Session: session, Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: b.now}
	if change != nil {
		change(&r)
	}
	if _, _, err := b.store.Accept(b.Context(), goclaw.Acceptance{Run: r}); err != nil {
		b.Fatal(err)
	}
	claimed, err := b.store.Claim(b.Context(), goclaw.ClaimRequest{Owner: "o", Now: b.now, Lease: time.Hour, Max: 1})
	if err != nil || len(claimed) != 1 {
		b.Fatal(claimed, err)
	}
	b.runs[id] = claimed[0].Run
}

// spawn starts a worker of parent.
func (b *bench) spawn(id, parent string, change func(*goclaw.Run)) {
	b.Helper()
	p := b.runs[parent]
	b.begin(id, goclaw.SubagentKey("main", id), func(r *goclaw.Run) {
		r.Trigger, r.Requester, r.Parent, r.Root, r.Profile.Strict = goclaw.TriggerSpawn, p.Session, p.ID, p.Root, true
		if change != nil {
			change(r)
		}
	})
}

// call makes a call for a run and records what it leaves, as the engine does.
func (b *bench) call(run, name string, arguments any) goclaw.ToolResult {
	b.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		b.Fatal(err)
	}
	r := b.runs[run]
	tools := artifact.Tools(b.store, "result.md")
	tool := tools[slices.IndexFunc(tools, func(t goclaw.Tool) bool { return t.Spec().Name == name })]
	res := tool.Call(b.Context(), goclaw.Invocation{
		Call: goclaw.ToolCall{ID: "c", Name: name, Arguments: string(raw)}, Fence: r.Fence(),
		Session: r.Session, Depth: r.Depth, Profile: r.Profile, Root: r.Root,
	})
	if len(res.Artifacts) > 0 {
		b.now++
		if err := b.store.Append(b.Context(), r.Fence(), goclaw.Batch{Artifacts: res.Artifacts, Now: b.now}); err != nil {
			b.Fatal(err)
		}
	}
	return res
}

type args map[string]any

func (b *bench) write(run, name, content string) {
	b.Helper()
	if res := b.call(run, "artifact_write", args{"name": name, "content": content}); res.IsError {
		b.Fatal(res.Content)
	}
}

func (b *bench) refuses(res goclaw.ToolResult, want string) {
	b.Helper()
	if !res.IsError || !strings.Contains(res.Content, want) || len(res.Artifacts) != 0 {
		b.Errorf("want the refusal %q, got %+v", want, res)
	}
}

func TestWriteReadList(t *testing.T) {
	b := newBench(t)
	b.begin("0123456789", mainKey, nil)
	res := b.call("0123456789", "artifact_write", args{"name": "plans/PLAN.md", "content": "# The plan ä"})
	if res.Content != `{"handle":"artifact:01234567/plans/PLAN.md","size":13}` || res.Artifacts[0].MediaType != "text/markdown" {
		t.Errorf("%+v", res)
	}
	b.write("0123456789", "data.json", "{}")
	b.write("0123456789", "plans/PLAN.md", "anew")
	b.call("0123456789", "artifact_write", args{"name": "table", "content": "", "mediaType": "text/csv; charset=utf-8"})
	for _, q := range []args{{"handle": "artifact:01234567/plans/PLAN.md"}, {"name": "plans/PLAN.md"}, {"name": "artifact:0123456789/plans/PLAN.md"}, {"handle": "plans/PLAN.md"}} {
		if res := b.call("0123456789", "artifact_read", q); res.IsError || res.Content != "anew" {
			t.Errorf("%v: %+v", q, res)
		}
	}
	if res := b.call("0123456789", "artifact_read", args{"name": "table"}); res.IsError || res.Content != "" {
		t.Errorf("%+v", res)
	}
	want := `[{"handle":"artifact:01234567/table","size":0,"mediaType":"text/csv; charset=utf-8","at":"1970-01-01 00:00Z"},` +
		`{"handle":"artifact:01234567/plans/PLAN.md","size":4,"mediaType":"text/markdown","at":"1970-01-01 00:00Z"},` +
		`{"handle":"artifact:01234567/data.json","size":2,"mediaType":"application/json","at":"1970-01-01 00:00Z"}]`
	if res := b.call("0123456789", "artifact_list", args{}); res.Content != want {
		t.Error(res.Content)
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t)
	b.begin("0123456789", mainKey, nil)
	write := func(name, content, mediaType string) goclaw.ToolResult {
		return b.call("0123456789", "artifact_write", args{"name": name, "content": content, "mediaType": mediaType})
	}
	for _, name := range []string{
		"", ".", "..", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", `a\b`, "c:x", "a\nb", "a\x00b", "a\u202eb", "a.", "a /b", "con?", strings.Repeat("n", 201),
	} {
		b.refuses(write(name, "x", ""), "name")
	}
	b.refuses(write("result.md", "x", ""), "choose another")
	b.refuses(write("big", strings.Repeat("x", 1<<20+1), ""), "at most 1048576; shorten it")
	b.refuses(write("a", "x", "markdown"), "mediaType")
	b.refuses(write("a", "x", "te xt/a"), "mediaType")
	if res := write("big", strings.Repeat("x", 1<<20), ""); res.IsError {
		t.Error(res.Content)
	}
	for q, want := range map[string]string{
		`{}`:                              "which one?",
		`{"name":"none"}`:                 `no artifact \"none\" that you may read`,
		`{"handle":"artifact:01234567"}`:  "no handle",
		`{"handle":"artifact:0123/none"}`: `left no \"none\"`,
		`{"handle":"artifact:9999/none"}`: `no run \"9999\"`,
		`{"handle":"artifact:0/none"}`:    `no run \"0\"`,
		`{"name":"big","offset":1048577}`: "only 1048576 bytes",
	} {
		b.refuses(b.call("0123456789", "artifact_read", json.RawMessage(q)), want)
	}
	if err := b.store.Append(t.Context(), b.runs["0123456789"].Fence(), goclaw.Batch{Artifacts: []goclaw.ArtifactData{{Name: "pic", Data: []byte("\xff\xd8"), MediaType: "image/jpeg"}}}); err != nil {
		t.Fatal(err)
	}
	b.refuses(b.call("0123456789", "artifact_read", args{"name": "pic"}), "no text: 2 bytes of image/jpeg")
}

// What a page holds, put together, is the whole, whatever its characters.
func TestPages(t *testing.T) {
	b := newBench(t)
	b.begin("0123456789", mainKey, nil)
	rapid.Check(t, func(rt *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "ä", "€", "😀", "line\n", "a😀"}).Draw(rt, "unit")
		text := strings.Repeat(unit, rapid.IntRange(0, 100_000).Draw(rt, "bytes")/len(unit))
		b.write("0123456789", "long", text)
		var whole strings.Builder
		for offset := 0; ; {
			res := b.call("0123456789", "artifact_read", args{"name": "long", "offset": offset})
			part, note, more := strings.Cut(res.Content, "\n[")
			if res.IsError || len(part) > 30_000 || !utf8.ValidString(res.Content) {
				rt.Fatalf("offset %d: %d bytes, %v", offset, len(part), res.IsError)
			}
			whole.WriteString(part)
			if !more {
				break
			}
			var shown, of, next int
			if _, err := fmt.Sscanf(note, "%d of %d bytes; read on with offset %d]", &shown, &of, &next); err != nil || of != len(text) || next != offset+len(part) || shown != len(part) || next <= offset {
				rt.Fatalf("%q: %v", note, err)
			}
			offset = next
		}
		if whole.String() != text {
			rt.Fatalf("read %d bytes of %d", whole.Len(), len(text))
		}
	})
	b.write("0123456789", "short", "aä")
	if res := b.call("0123456789", "artifact_read", args{"name": "short", "offset": -5}); res.Content != "aä" {
		t.Errorf("an offset before the beginning shows %q", res.Content)
	}
	if res := b.call("0123456789", "artifact_read", args{"name": "short", "offset": 2}); res.Content != "ä" {
		t.Errorf("an offset within a character shows %q", res.Content)
	}
}

// Who may read what: every run writes SECRET.md, and every run reads that of
// every other, by handle.
func TestWhoReads(t *testing.T) {
	b := newBench(t)
	lifted := func(r *goclaw.Run) { r.Profile.Inherit = []string{"USER.md"} }
	open := func(r *goclaw.Run) { r.Profile.Strict = false }
	b.begin("turn1-main", mainKey, nil)
	b.spawn("work1", "turn1-main", nil)
	b.spawn("work2", "turn1-main", nil)
	b.spawn("inner", "work1", nil)
	b.spawn("lift1", "turn1-main", lifted)
	b.spawn("lift2", "turn1-main", lifted)
	b.spawn("frank", "turn1-main", open)
	b.begin("chat1", goclaw.APIKey("main", "me"), nil)
	b.spawn("other", "chat1", nil)
	b.begin("daily", goclaw.CronKey("main", "j"), func(r *goclaw.Run) { r.Trigger = goclaw.TriggerCron; r.Profile.Strict = true })
	b.spawn("crony", "daily", nil)
	b.begin("second", goclaw.MainKey("second"), nil)
	reads := map[string][]string{
		"turn1-main": {"turn1-main", "work1", "work2", "lift1", "lift2", "frank"},
		"work1":      {"work1", "work2", "inner"},
		"work2":      {"work1", "work2", "inner"},
		"inner":      {"work1", "work2", "inner"},
		"lift1":      {"work1", "work2", "inner", "lift1", "lift2"},
		"lift2":      {"work1", "work2", "inner", "lift1", "lift2"},
		"frank":      {"work1", "work2", "inner", "lift1", "lift2", "frank"},
		"chat1":      {"chat1", "other"},
		"other":      {"other"},
		"daily":      {"daily", "crony"},
		"crony":      {"crony"},
		"second":     {"second"},
	}
	for run := range reads {
		b.write(run, "SECRET.md", "CANARY of "+run)
		b.write(run, "only-"+run, "CANARY of "+run)
	}
	for who, may := range reads {
		list := b.call(who, "artifact_list", args{}).Content
		for of := range reads {
			want := slices.Contains(may, of)
			for _, q := range []args{
				{"handle": goclaw.ArtifactHandle(of, "SECRET.md")}, {"handle": "artifact:" + of + "/SECRET.md"}, {"name": "only-" + of},
			} {
				res := b.call(who, "artifact_read", q)
				if got := res.Content == "CANARY of "+of; got != want || res.IsError == want {
					t.Errorf("%s reads %v: %+v, want %v", who, q, res, want)
				}
				if !want && strings.Contains(res.Content, "CANARY") {
					t.Errorf("%s is told of %v: %s", who, q, res.Content)
				}
			}
			own := of == who || b.runs[of].Requester == b.runs[who].Session
			if got := strings.Contains(list, "only-"+of+`"`); got != own {
				t.Errorf("%s is listed what %s left: %v", who, of, got)
			}
		}
		if res := b.call(who, "artifact_read", args{"name": "SECRET.md"}); res.IsError || !slices.Contains(may, strings.TrimPrefix(res.Content, "CANARY of ")) {
			t.Errorf("%s reads by name: %+v", who, res)
		}
	}
}

// A later turn of a session reads what an earlier one left.
func TestLaterTurn(t *testing.T) {
	b := newBench(t)
	b.begin("turn1", mainKey, nil)
	b.write("turn1", "note.md", "kept")
	if err := b.store.End(t.Context(), b.runs["turn1"].Fence(), goclaw.Ending{State: goclaw.StateCompleted}); err != nil {
		t.Fatal(err)
	}
	b.begin("turn2", mainKey, nil)
	if res := b.call("turn2", "artifact_read", args{"name": "note.md"}); res.Content != "kept" {
		t.Errorf("%+v", res)
	}
}

// The beginnings of two ids may be the same.
func TestAlikeRuns(t *testing.T) {
	b := newBench(t)
	b.begin("12345678-a", mainKey, nil)
	b.begin("12345678-b", goclaw.APIKey("main", "x"), nil)
	b.write("12345678-a", "n", "of a")
	b.write("12345678-b", "n", "of b")
	for run, want := range map[string]string{"12345678-a": "of a", "12345678-b": "of b"} {
		if res := b.call(run, "artifact_read", args{"handle": "artifact:12345678/n"}); res.Content != want {
			t.Errorf("%s: %+v", run, res)
		}
	}
	b.refuses(b.call("12345678-a", "artifact_read", args{"handle": "artifact:12345678/none"}), "give more of its id")
}

func TestToolsAskAgain(t *testing.T) {
	b := newBench(t)
	b.begin("turn1", mainKey, nil)
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]args{"artifact_read": {"handle": "artifact:turn1/x"}, "artifact_list": {}} {
		if res := b.call("turn1", name, q); res.Again == nil || res.Content != "" {
			t.Errorf("%s while the store is away: %+v", name, res)
		}
	}
	b.refuses(artifact.Tools(b.store)[0].Call(t.Context(), goclaw.Invocation{Call: goclaw.ToolCall{Arguments: "{"}}), "arguments")
}

func TestSpecs(t *testing.T) {
	var names []string
	tokens := 0
	for _, tool := range artifact.Tools(nil) {
		spec := tool.Spec()
		names = append(names, spec.Name)
		tokens += spec.Tokens()
		if !spec.Idempotent || !json.Valid(spec.Schema) || spec.Ordered != (spec.Name == "artifact_write") {
			t.Errorf("%+v", spec)
		}
	}
	if slices.Sort(names); !slices.Equal(names, artifact.Names()) {
		t.Errorf("%v", names)
	}
	t.Logf("%d tokens", tokens)
}

// fixed is a store with one artifact.
type fixed struct{}

func (fixed) Run(context.Context, string) (goclaw.Run, error) {
	return goclaw.Run{ID: "5eb436d5", Session: mainKey}, nil
}

func (fixed) ArtifactsOf(context.Context, goclaw.ArtifactFilter) ([]goclaw.Artifact, error) {
	return []goclaw.Artifact{{Run: "5eb436d5", Name: "PLAN.md", SHA256: "sum"}}, nil
}

func (fixed) Blob(_ context.Context, sha string) ([]byte, error) {
	if sha != "sum" {
		return nil, errors.New("no such content")
	}
	return []byte("1. Measure. 2. Cut."), nil
}

func ExampleTools() {
	for _, tool := range artifact.Tools(fixed{}) {
		if tool.Spec().Name == "artifact_read" {
			res := tool.Call(context.Background(), goclaw.Invocation{
				Session: mainKey, Call: goclaw.ToolCall{Arguments: `{"handle":"artifact:5eb436d5/PLAN.md"}`},
			})
			fmt.Println(res.Content)
		}
	}
	// Output: 1. Measure. 2. Cut.
}
