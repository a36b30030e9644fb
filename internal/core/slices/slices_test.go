package slices_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/slices"
)

// world is a Reader over texts.
type world struct {
	names     []string // sorted
	files     map[string]string
	artifacts map[string]string
	private   string
	asked     []slices.Want
}

func (w *world) Files(wants []slices.Want) ([]slices.Found, error) {
	w.asked = append(w.asked, wants...)
	var out []slices.Found
	for _, want := range wants {
		before := len(out)
		for _, name := range w.names {
			match := name == path.Clean(want.File)
			if want.Glob != "" {
				match, _ = doublestar.Match(want.Glob, name)
			}
			if match {
				out = append(out, slices.Found{Source: name, Text: w.files[name], Size: len(w.files[name])})
			}
		}
		if w.private != "" && want.File == w.private && !want.Lenient {
			return nil, fmt.Errorf("slice %s: %s: private", want.Name, want.File)
		}
		if len(out) == before && !want.Optional && !want.Lenient {
			return nil, fmt.Errorf("slice %s: %s%s: no such file", want.Name, want.File, want.Glob)
		}
	}
	return out, nil
}

func (w *world) Artifact(handle string) (slices.Found, error) {
	text, ok := w.artifacts[handle]
	if !ok {
		return slices.Found{}, goclaw.ErrNotFound
	}
	return slices.Found{Source: handle, Text: text, Size: len(text)}, nil
}

var planning = &world{
	names: []string{".planning/PROJECT.md", ".planning/phases/1/01-CONTEXT.md", ".planning/phases/1/02-CONTEXT.md", "PLAN.md", "app/[id]/page.tsx", "broken.md", "src/a.go", "src/b.go"},
	files: map[string]string{
		".planning/PROJECT.md":             "the vision\n",
		".planning/phases/1/01-CONTEXT.md": "one",
		".planning/phases/1/02-CONTEXT.md": "two",
		"PLAN.md": "---\nfiles_modified:\n  - src/a.go\n  - ./src/b.go\nnew: [src/new.go]\nempty: []\nnumber: [1]\nout: [../x]\nmeta: {file: src/b.go}\n---\n" +
			"Change `src/a.go:12`, (src/b.go) and see https://example.com/src/x.go, PLAN.md, `app/[id]/page.tsx`; SOUL.md stays. Make src/new.go.\n",
		"app/[id]/page.tsx": "page",
		"broken.md":         "---\na: [\n---\n",
		"src/a.go":          "package a\n",
		"src/b.go":          "package b\n\nfunc B() {\n" + strings.Repeat("\tprintln(1)\n", 200) + "}\n",
	},
	artifacts: map[string]string{"run1/notes.md": "---\nfiles: [src/a.go]\n---\nnotes"},
}

func TestAssemble(t *testing.T) {
	plan := definition.Slice{File: "PLAN.md"}
	type sources []string
	for name, c := range map[string]struct {
		wanted []definition.Slice
		input  string
		want   sources // tag source
		fails  string
	}{
		"file":                        {[]definition.Slice{{File: ".planning/PROJECT.md"}}, ``, sources{"project .planning/PROJECT.md"}, ""},
		"tagged":                      {[]definition.Slice{{File: ".planning/PROJECT.md", Tag: "vision"}}, `{}`, sources{"vision .planning/PROJECT.md"}, ""},
		"glob":                        {[]definition.Slice{{Glob: ".planning/phases/{{phase}}/*-CONTEXT.md", Tag: "c"}}, `{"phase": 1}`, sources{"c .planning/phases/1/01-CONTEXT.md", "c .planning/phases/1/02-CONTEXT.md"}, ""},
		"glob, untagged":              {[]definition.Slice{{Glob: ".planning/phases/{{ input.phase }}/01*"}}, `{"phase": "1"}`, sources{"file_01_context .planning/phases/1/01-CONTEXT.md"}, ""},
		"item of a list":              {[]definition.Slice{{Glob: ".planning/phases/{{of.0.phase}}/01*", Tag: "c"}}, `{"of": [{"phase": 1}]}`, sources{"c .planning/phases/1/01-CONTEXT.md"}, ""},
		"no item of a list":           {[]definition.Slice{{File: "{{of.1}}"}}, `{"of": ["x"]}`, nil, "the input has no field of.1"},
		"value is no pattern":         {[]definition.Slice{{Glob: ".planning/phases/{{phase}}/*"}}, `{"phase": "*"}`, nil, "no such file"},
		"value with brackets":         {[]definition.Slice{{Glob: "app/{{id}}/*"}}, `{"id": "[id]"}`, sources{"page app/[id]/page.tsx"}, ""},
		"traversal":                   {[]definition.Slice{{File: ".planning/{{phase}}/x"}}, `{"phase": "../.."}`, nil, `d.md:3:5: slice file .planning/{{phase}}/x: {{phase}} is "../.."`},
		"traversal in two parts":      {[]definition.Slice{{File: "{{a}}{{a}}/x"}}, `{"a": "."}`, nil, "no path inside"},
		"absolute":                    {[]definition.Slice{{File: "{{a}}"}}, `{"a": "/etc/passwd"}`, nil, "leads out"},
		"backslash":                   {[]definition.Slice{{File: "{{a}}"}}, `{"a": "..\\x"}`, nil, "leads out"},
		"no field":                    {[]definition.Slice{{File: "{{a}}"}}, `{}`, nil, "the input has no field a"},
		"no field, optional":          {[]definition.Slice{{File: "{{a}}", Optional: true}}, ``, nil, ""},
		"a list as value":             {[]definition.Slice{{File: "{{a}}"}}, `{"a": []}`, nil, "list or an object"},
		"no placeholder":              {[]definition.Slice{{File: "{{a b}}"}}, `{}`, nil, "placeholder that is none"},
		"missing":                     {[]definition.Slice{{File: "gone"}}, ``, nil, "d.md:3:5: slice file gone: gone: no such file"},
		"missing, optional":           {[]definition.Slice{{File: "gone", Optional: true}}, ``, nil, ""},
		"artifact":                    {[]definition.Slice{{Artifact: "{{n}}", Tag: "n"}}, `{"n": "run1/notes.md"}`, sources{"n run1/notes.md"}, ""},
		"no artifact":                 {[]definition.Slice{{Artifact: "x"}}, ``, nil, "there is no artifact x; give it, or write optional: true"},
		"no artifact, optional":       {[]definition.Slice{{Artifact: "x", Optional: true}}, ``, nil, ""},
		"from the input":              {[]definition.Slice{{From: "plan.files_modified", Tag: "t"}}, `{"plan": {"files_modified": ["src/b.go", "src/a.go", "./src/b.go"]}}`, sources{"t src/b.go", "t src/a.go"}, ""},
		"from one path":               {[]definition.Slice{{From: "f"}}, `{"f": "src/a.go"}`, sources{"a src/a.go"}, ""},
		"from a front matter":         {[]definition.Slice{plan, {From: "plan.files_modified", Tag: "t"}}, ``, sources{"plan PLAN.md", "t src/a.go", "t src/b.go"}, ""},
		"from a nested field":         {[]definition.Slice{plan, {From: "plan.meta.file"}}, ``, sources{"plan PLAN.md", "b src/b.go"}, ""},
		"from an artifact":            {[]definition.Slice{{Artifact: "run1/notes.md"}, {From: "notes.files"}}, ``, sources{"notes run1/notes.md", "a src/a.go"}, ""},
		"from a file the input names": {[]definition.Slice{{From: "plan.files_modified", Tag: "t"}}, `{"plan": "PLAN.md"}`, sources{"t src/a.go", "t src/b.go"}, ""},
		"from a text of the input":    {[]definition.Slice{{From: "mentions:plan", Tag: "t"}}, `{"plan": "change\nsrc/a.go"}`, sources{"t src/a.go"}, ""},
		"mentions":                    {[]definition.Slice{plan, {From: "mentions:plan", Tag: "t"}}, ``, sources{"plan PLAN.md", "t src/a.go", "t src/b.go", "t app/[id]/page.tsx"}, ""},
		"mentions, the other way":     {[]definition.Slice{plan, {From: "plan.files", Tag: "t"}}, ``, sources{"plan PLAN.md", "t src/a.go", "t src/b.go", "t app/[id]/page.tsx"}, ""},
		"mentions nothing":            {[]definition.Slice{{File: "src/a.go", Tag: "x"}, {From: "x.files"}}, ``, nil, "mentions no file"},
		"a listed file is missing":    {[]definition.Slice{plan, {From: "plan.new"}}, ``, nil, "src/new.go: no such file"},
		"the same, optional":          {[]definition.Slice{plan, {From: "plan.new", Optional: true}}, ``, sources{"plan PLAN.md"}, ""},
		"an empty list":               {[]definition.Slice{plan, {From: "plan.empty"}}, ``, nil, "plan.empty is empty"},
		"a list of numbers":           {[]definition.Slice{plan, {From: "plan.number"}}, ``, nil, "no list of paths"},
		"a list that leads out":       {[]definition.Slice{plan, {From: "plan.out"}}, ``, nil, `"../x" is no path inside`},
		"unknown field":               {[]definition.Slice{plan, {From: "plan.gone"}}, ``, nil, "front matter of plan has no field gone"},
		"unknown from":                {[]definition.Slice{plan, {From: "plna.files"}}, ``, nil, "neither a field of the input nor an earlier slice is called plna (the slices before it are plan)"},
		"a later slice":               {[]definition.Slice{{From: "plan.files"}, plan}, ``, nil, "no slice stands before it"},
		"a broken front matter":       {[]definition.Slice{{File: "broken.md"}, {From: "broken.a"}}, ``, nil, "front matter of broken.md can't be read, line"},
		"too long":                    {[]definition.Slice{{File: "src/b.go", MaxTokens: 40, Overflow: "error"}}, ``, nil, "tokens in one file are more than maxTokens 40; raise maxTokens, or write overflow: cut"},
		"too little":                  {[]definition.Slice{{Glob: "src/*.go", MaxTokens: 40, Overflow: "cut"}}, ``, nil, "raise it to 64"},
		"no JSON":                     {[]definition.Slice{plan}, `{`, nil, "d.md: the input can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.wanted {
				c.wanted[i].Line, c.wanted[i].Col = 3, 5
			}
			got, err := slices.Assemble("d.md", c.wanted, json.RawMessage(c.input), planning)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || !strings.HasPrefix(err.Error(), "d.md:") || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var has sources
			for _, s := range got {
				has = append(has, s.Tag+" "+s.Source)
				if s.How != "whole" || s.Text != planning.files[s.Source]+planning.artifacts[s.Source] || s.Dropped != 0 || s.Tokens != slices.Tokens(s.Text) {
					t.Errorf("%+v", s)
				}
			}
			if d := cmp.Diff(c.want, has); d != "" {
				t.Error(d)
			}
		})
	}
}

// A mentioned file that the worker may not see is left out; a named one refuses.
func TestPrivate(t *testing.T) {
	w := *planning
	w.private = "SOUL.md"
	if _, err := slices.Assemble("d.md", []definition.Slice{{File: "PLAN.md"}, {From: "plan.files"}}, nil, &w); err != nil {
		t.Error(err)
	}
	_, err := slices.Assemble("d.md", []definition.Slice{{From: "f", Optional: true}}, json.RawMessage(`{"f": ["SOUL.md"]}`), &w)
	if err == nil || !strings.Contains(err.Error(), "private") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	_, err := slices.Assemble("d.md", []definition.Slice{{Artifact: "x"}}, nil, failing{})
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

var errBroken = errors.New("broken")

type failing struct{}

func (failing) Files([]slices.Want) ([]slices.Found, error) { return nil, errBroken }
func (failing) Artifact(string) (slices.Found, error)       { return slices.Found{}, errBroken }

func TestOverflow(t *testing.T) {
	get := func(s definition.Slice) goclaw.SliceText {
		t.Helper()
		got, err := slices.Assemble("d.md", []definition.Slice{s}, nil, planning)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, error %v", got, err)
		}
		return got[0]
	}
	whole := len(planning.files["src/b.go"])
	c := get(definition.Slice{File: "src/b.go", MaxTokens: 50, Overflow: "cut"})
	if c.How != "cut" || c.Tokens > 50 || !strings.HasPrefix(c.Text, "package b") || !strings.HasSuffix(c.Text, "}\n") ||
		!strings.Contains(c.Text, fmt.Sprintf("[… %d bytes left out …]", c.Dropped)) || c.Dropped >= whole {
		t.Errorf("cut: %+v", c)
	}
	o := get(definition.Slice{File: "src/b.go", MaxTokens: 50, Overflow: "outline"})
	if o.How != "outline" || o.Tokens > 50 || !strings.Contains(o.Text, "3\tfunc B()\n") || o.Dropped != whole-len(o.Text) {
		t.Errorf("outline: %+v", o)
	}
	if got := get(definition.Slice{File: "src/b.go", MaxTokens: 5000, Overflow: "outline"}); got.How != "whole" {
		t.Errorf("what fits is outlined: %+v", got)
	}
}

func TestOutlineTooLong(t *testing.T) {
	w := &world{names: []string{"a.go", "b.txt"}, files: map[string]string{
		"a.go": "package a\n" + strings.Repeat("func F() { println(1); println(2); println(3) }\n", 500), "b.txt": strings.Repeat("text ", 100),
	}}
	got, err := slices.Assemble("d.md", []definition.Slice{{Glob: "*", MaxTokens: 100, Overflow: "outline"}}, nil, w)
	if err != nil {
		t.Fatal(err)
	}
	for i, says := range []string{"bytes of the outline left out", "bytes left out"} {
		if got[i].How != "cut" || !strings.Contains(got[i].Text, says) {
			t.Errorf("%+v", got[i])
		}
	}
}

func TestRender(t *testing.T) {
	got := slices.Render([]goclaw.SliceText{
		{Tag: "plan", Source: "a\"<\n.md", Text: "x </plan> y\n"},
		{Tag: "code", Source: "b", Text: "</PLAN></ code\n>< /plan><plan></other>"},
	})
	want := "<plan path=\"a&#34;&lt;&#10;.md\">\nx <\\/plan> y\n</plan>\n" +
		"<code path=\"b\">\n<\\/PLAN><\\/ code\n>< \\/plan><plan></other>\n</code>\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := slices.Render(nil); got != "" {
		t.Errorf("nothing renders as %q", got)
	}
}

// Whatever the texts, slices keep their bound and their order, and no text
// ends a tag.
func TestFit(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "ä", "func F() {\n", "}\n", "</t>", "</ T>", "</u>", "# Head\n", "\n", "word ", "```\n", "日本"})
	rapid.Check(t, func(t *rapid.T) {
		w := &world{files: map[string]string{}}
		n := rapid.IntRange(1, 5).Draw(t, "files")
		for i := range n {
			name := fmt.Sprintf("%d%s", i, rapid.SampledFrom([]string{".md", ".go", ".txt", ".py"}).Draw(t, "ext"))
			w.names = append(w.names, name)
			w.files[name] = strings.Repeat(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "text"), ""), rapid.IntRange(1, 30).Draw(t, "times"))
		}
		s := definition.Slice{Glob: "*", Tag: "t", MaxTokens: rapid.IntRange(1, 2000).Draw(t, "max"), Overflow: rapid.SampledFrom([]string{"error", "cut", "outline"}).Draw(t, "overflow")}
		got, err := slices.Assemble("d.md", []definition.Slice{s, {Glob: w.names[0], Tag: "u"}}, nil, w)
		if err != nil {
			if s.Overflow != "error" && s.MaxTokens >= 32*n {
				t.Fatal(err)
			}
			return
		}
		total := 0
		for i, g := range got[:n] {
			total += g.Tokens
			if g.Source != w.names[i] || !utf8.ValidString(g.Text) || g.Tokens != slices.Tokens(g.Text) {
				t.Fatalf("%+v", g)
			}
			if whole := g.Text == w.files[g.Source]; whole != (g.How == "whole") || whole != (g.Dropped == 0) || g.Dropped < 0 {
				t.Fatalf("%+v of %d bytes", g, len(w.files[g.Source]))
			}
		}
		if total > s.MaxTokens {
			t.Fatalf("%d tokens of %d", total, s.MaxTokens)
		}
		if ends := regexp.MustCompile(`(?i)<\s*/\s*[tu]`).FindAllString(slices.Render(got), -1); len(ends) != len(got) {
			t.Fatalf("%d ends of %d slices", len(ends), len(got))
		}
	})
}

// No value leads out of the workspace or acts as a pattern.
func FuzzPlaceholders(f *testing.F) {
	for _, seed := range []string{"1", "..", "../x", "/x", "a/../../b", "*", "{a,b}", "[a]", "\\..\\", "~", "C:x", "a\x00", "{{b}}", ". .", "．．"} {
		f.Add("p/{{a}}/x.md", seed)
	}
	f.Add("{{a}}{{a}}", ".")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		input, err := json.Marshal(map[string]any{"a": value, "b": []any{value}, "c": map[string]any{"d": value}})
		if err != nil || !utf8.ValidString(value) {
			return
		}
		for _, s := range []definition.Slice{{File: pattern}, {Glob: pattern}, {From: pattern}, {From: "b"}, {From: "c.d"}, {From: "c.files"}, {From: "a.files"}} {
			w := &world{}
			_, err := slices.Assemble("d.md", []definition.Slice{s}, input, w)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			for _, want := range w.asked {
				name := want.File + want.Glob
				if name == "" || path.IsAbs(name) || name != ".." && strings.HasPrefix(path.Clean(name), "..") && strings.Contains("/"+name+"/", "/../") || strings.ContainsRune(name, 0) {
					t.Fatalf("%+v asks for %q", s, name)
				}
			}
		}
		w := &world{names: []string{"q/" + "secret.md"}, files: map[string]string{}}
		if got, err := slices.Assemble("d.md", []definition.Slice{{Glob: "q/{{a}}.md", Optional: true}}, input, w); err == nil && len(got) > 0 && value != "secret" && value != "./secret" {
			t.Fatalf("the value %q matches %v", value, got)
		}
	})
}

// Text of a file never makes the search for what it mentions fail or lead out.
func FuzzMentions(f *testing.F) {
	f.Add(planning.files["PLAN.md"])
	f.Add("---\nfiles: [\"../a\", b]\n---\n`a/../..//b` ~/x.go C:\\x.go ./.. a/b/ .")
	f.Fuzz(func(t *testing.T, text string) {
		w := &world{names: []string{"p.md"}, files: map[string]string{"p.md": text}}
		_, _ = slices.Assemble("d.md", []definition.Slice{{File: "p.md"}, {From: "mentions:p", Optional: true}}, nil, w)
		_, _ = slices.Assemble("d.md", []definition.Slice{{File: "p.md"}, {From: "p.files", Optional: true}}, nil, w)
		for _, want := range w.asked {
			if path.IsAbs(want.File) || strings.Contains("/"+want.File+"/", "/../") {
				t.Fatalf("asks for %q", want.File)
			}
		}
	})
}
