package prefix_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/prefix"
)

var sections = []goclaw.Section{
	{ID: "identity", Text: "You are <one>."}, {ID: "empty"}, {ID: "gone", Text: "not in the prompt"},
	{ID: "file:SOUL.md", Title: "SOUL.md", Text: "Soul."}, {ID: "runtime", Title: "Runtime", Text: "box"},
}

// The same request as Anthropic's API takes it, as OpenAI's, and as the
// demonstration model.
const (
	anthropic = `{"max_tokens":9,"messages":[
{"content":[{"text":"hi","type":"text"}],"role":"user"},
{"content":[{"type":"tool_use","input":{"cache_control":1}}],"role":"assistant"},
{"content":[{"tool_use_id":"c","cache_control":{"type":"ephemeral"},"type":"tool_result"}],"role":"user"}],
"model":"m","system":[{"text":"You are <one>.\n\n## SOUL.md\nSoul.\n\n## Runtime\nbox","cache_control":{"type":"ephemeral"}}],
"tools":[{"name":"exec","input_schema":{"properties":{"cache_control":{}}}},{"name":"read","cache_control":{"type":"ephemeral"}}],"stream":true}`
	openai = `{"messages":[{"content":"You are \u003cone\u003e.\n\n## SOUL.md\nSoul.","role":"system"},{"role":"developer","content":[{"text":"## Runtime\nbox"}]},
{"content":"hi","role":"user"},{"role":"assistant","tool_calls":[{"id":"c"}]},{"content":null,"role":"tool"}],
"model":"m","tools":[{"function":{"name":"exec"},"type":"function"}]}`
	demo = `{"model":"m","tools":[],"system":"You are <one>.","messages":[{"role":"user","parts":[]}]}`
)

func TestParts(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       []string
		fields     map[string]string
	}{
		{"anthropic", anthropic, []string{
			`tool exec: {"name":"exec","input_schema":{"properties":{"cache_control":{}}}}`,
			`tool read: {"name":"read"}`,
			"section identity: You are <one>.",
			"section file:SOUL.md: \n\n## SOUL.md\nSoul.",
			"section runtime: \n\n## Runtime\nbox",
			`message 1 (user): {"content":[{"text":"hi","type":"text"}],"role":"user"}`,
			`message 2 (assistant): {"content":[{"type":"tool_use","input":{"cache_control":1}}],"role":"assistant"}`,
			`message 3 (user): {"content":[{"tool_use_id":"c","type":"tool_result"}],"role":"user"}`,
		}, map[string]string{"max_tokens": "9", "model": `"m"`, "stream": "true"}},
		{"openai", openai, []string{
			`tool exec: {"function":{"name":"exec"},"type":"function"}`,
			"section identity: You are <one>.",
			"section file:SOUL.md: \n\n## SOUL.md\nSoul.",
			"section runtime: \n\n## Runtime\nbox",
			`message 1 (user): {"content":"hi","role":"user"}`,
			`message 2 (assistant): {"role":"assistant","tool_calls":[{"id":"c"}]}`,
			`message 3 (tool): {"content":null,"role":"tool"}`,
		}, map[string]string{"model": `"m"`}},
		{"demo", demo, []string{
			"section identity: You are <one>.", `message 1 (user): {"role":"user","parts":[]}`,
		}, map[string]string{"model": `"m"`}},
		{"text that no section explains", `{"system":"You are <one>. And more."}`,
			[]string{"section identity: You are <one>.", "system prompt:  And more."}, map[string]string{}},
		{"nothing", `{"tools":null,"messages":null,"system":null}`, nil, map[string]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := prefix.Parts([]byte(test.body), sections)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Parts {
				got = append(got, p.Name+": "+p.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.fields, r.Fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPartsRefusesWhatIsNoRequest(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{"tools":`, `{"tools":{}}`, `{"tools":["text"]}`, `{"tools":[{"name":1}]}`, `{"system":5}`, `{"system":"\q"}`,
		`{"messages":"text"}`, `{"messages":["text"]}`, `{"messages":[{"role":3}]}`, `{"messages":[{"role":"system","content":7}]}`,
	} {
		if r, err := prefix.Parts([]byte(body), nil); err == nil || !strings.HasPrefix(err.Error(), "take request apart: ") {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

func request(parts ...string) prefix.Request {
	var r prefix.Request
	kinds := map[string]prefix.Kind{"t": prefix.Tool, "s": prefix.Section, "m": prefix.Message}
	for _, p := range parts {
		name, text, _ := strings.Cut(p, "=")
		r.Parts = append(r.Parts, prefix.Part{Kind: kinds[name[:1]], Name: name, Text: text})
	}
	return r
}

func TestDiff(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, test := range []struct {
		name          string
		a, b          prefix.Request
		bytes         int
		before        string
		partA, afterA string
		partB, afterB string
	}{
		{name: "in a section", a: request("t1=ab", "s1=cd", "s2=one"), b: request("t1=ab", "s1=cd", "s2=only"),
			bytes: 6, before: "cdon", partA: "s2", afterA: "e", partB: "s2", afterB: "ly"},
		{name: "a section more", a: request("s1=a", "s3=\n# c"), b: request("s1=a", "s2=\n# b", "s3=\n# c"),
			bytes: 4, before: "a\n# ", partA: "s3", afterA: "c", partB: "s2", afterB: "b"},
		{name: "a tool more", a: request("t1=ab", "s1=cd"), b: request("t1=ab", "t2=x", "s1=cd"),
			bytes: 2, before: "ab", partA: "s1", afterA: "cd", partB: "t2", afterB: "x"},
		{name: "the conversation went on", a: request("s1=a", "m1=b"), b: request("s1=a", "m1=b", "m2=c"),
			bytes: 2, before: "b", partB: "m2", afterB: "c"},
		{name: "other messages", a: request("s1=ab", "m1=b"), b: request("s1=ab", "m1=c"),
			bytes: 2, before: "ab", partA: "m1", afterA: "b", partB: "m1", afterB: "c"},
		{name: "empty against something", a: request(), b: request("m1=c"), partB: "m1", afterB: "c"},
		{name: "within a character", a: request("s1=é"), b: request("s1=è"),
			bytes: 1, before: "\ufffd", partA: "s1", afterA: "\ufffd", partB: "s1", afterB: "\ufffd"},
		{name: "long texts are cut between characters", a: request("m1=" + long + "x" + long), b: request("m1=" + long + "yy"),
			bytes: 400, before: strings.Repeat("é", 30), partA: "m1", afterA: "x" + strings.Repeat("é", 50), partB: "m1", afterB: "yy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := prefix.Diff(test.a, test.b)
			want := goclaw.SentDiff{
				Bytes: test.bytes, Tokens: (test.bytes + 3) / 4, Before: test.before, Fields: []string{},
				A: goclaw.SentSide{Bytes: d.A.Bytes, Part: test.partA, After: test.afterA},
				B: goclaw.SentSide{Bytes: d.B.Bytes, Part: test.partB, After: test.afterB},
			}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffNamesOtherFields(t *testing.T) {
	a, b := request("s1=a"), request("s1=a")
	a.Fields = map[string]string{"model": `"m"`, "max_tokens": "7", "thinking": "{}"}
	b.Fields = map[string]string{"model": `"m"`, "max_tokens": "8", "stop": "[]"}
	d := prefix.Diff(a, b)
	if diff := cmp.Diff([]string{"max_tokens", "stop", "thinking"}, d.Fields); diff != "" || !d.Equal {
		t.Errorf("%+v\n%s", d, diff)
	}
}

func drawRequest(t *rapid.T, name string) prefix.Request {
	var r prefix.Request
	for kind, letter := range []string{"t", "s", "m"} {
		for range rapid.IntRange(0, 3).Draw(t, name+letter) {
			r.Parts = append(r.Parts, prefix.Part{
				Kind: prefix.Kind(kind), Name: letter, Text: rapid.StringMatching(`[aé]{0,3}`).Draw(t, name+"text"),
			})
		}
	}
	return r
}

func text(r prefix.Request, kind prefix.Kind) string {
	var s string
	for _, p := range r.Parts {
		if p.Kind == kind {
			s += p.Text
		}
	}
	return s
}

func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRequest(t, "a"), drawRequest(t, "b")
		d, back := prefix.Diff(a, b), prefix.Diff(b, a)
		back.A, back.B = back.B, back.A
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("not symmetric: %s", diff)
		}
		if same := prefix.Diff(a, a); !same.Equal || same.Bytes != same.A.Bytes || same.A.Part != "" {
			t.Fatalf("not equal to itself: %+v", same)
		}
		var want int // by another way: byte after byte
		equal := true
		for _, kind := range []prefix.Kind{prefix.Tool, prefix.Section, prefix.Message} {
			x, y := text(a, kind), text(b, kind)
			for i := 0; equal && i < max(len(x), len(y)); i++ {
				if equal = i < len(x) && i < len(y) && x[i] == y[i]; equal {
					want++
				}
			}
		}
		if d.Equal != equal || d.Bytes != want {
			t.Fatalf("%+v: want %d bytes, equal %v", d, want, equal)
		}
		if !equal && d.A.Part == "" && d.B.Part == "" {
			t.Fatalf("no part named: %+v", d)
		}
		for _, shown := range []string{d.Before, d.A.After, d.B.After} {
			if !utf8.ValidString(shown) {
				t.Fatalf("no UTF-8: %q", shown)
			}
		}
	})
}

// Breakpoints move without a difference, wherever in their block they stand.
func TestBreakpointsDoNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := func(name string) []byte {
			block := func(i int) map[string]any {
				m := map[string]any{"type": "text", "text": strings.Repeat("x", i), "name": "n"}
				if rapid.Bool().Draw(t, name) {
					m["cache_control"] = map[string]string{"type": rapid.SampledFrom([]string{"ephemeral", "other"}).Draw(t, "type")}
				}
				return m
			}
			raw, err := json.Marshal(map[string]any{
				"tools": []any{block(1), block(2)}, "system": []any{block(3), block(4)},
				"messages": []any{map[string]any{"role": "user", "content": []any{block(5), block(6)}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		a, err := prefix.Parts(body("a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := prefix.Parts(body("b"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := prefix.Diff(a, b); !d.Equal || d.Bytes == 0 {
			t.Fatalf("%+v", d)
		}
	})
}
