package typed_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/core/typed"
)

const phaseForm = `{"type":"object","required":["phase"],"properties":{"phase":{"type":"string","minLength":1},"limit":{"type":"integer"},
 "tags":{"type":"array","items":{"type":"string"}}}}`

func TestInput(t *testing.T) {
	for _, c := range []struct{ form, input, problem string }{
		{phaseForm, `{"phase":"3"}`, ""},
		{phaseForm, `{"phase":"3","goal":"another field"}`, ""},
		{"", `[1]`, ""},
		{"", ``, ""},
		{`{"type":"array"}`, `[1]`, ""},
		{phaseForm, ``, `the input is missing, and this definition needs one: "phase" (string) is missing; send it as input`},
		{phaseForm, `{`, "the input is no JSON"},
		{phaseForm, `{"phase":3,"tags":["a",1]}`, "the input does not fit the definition's input schema: at /phase: want string, got integer; at /tags/1: want string, got integer; mend the input"},
		{phaseForm, `{"phase":"3","limt":1}`, `unknown field "limt" (did you mean "limit"?)`},
		{phaseForm, `null`, "want object, got null"},
		{`{"$ref":"#"}`, `{}`, "mend the definition"},
		{`{}`, strings.Repeat("[", 200) + strings.Repeat("]", 200), "deeper than 100"},
	} {
		got, err := typed.Input(json.RawMessage(c.form), json.RawMessage(c.input))
		switch {
		case err == nil && string(got) != c.input:
			t.Errorf("%s became %s", c.input, got)
		case c.problem == "" && err != nil:
			t.Errorf("%s: %v", c.input, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: got %v, want %s", c.input, err, c.problem)
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %q", c.input, err)
		}
	}
}

// Fields that are left out get their defaults, and those are there for what the
// definition makes of the input.
func TestInputDefaults(t *testing.T) {
	const form = `{"type":"object","required":["n"],"$defs":{"size":{"type":"string","default":"big"}},"allOf":[{"properties":{"also":{"default":null}}}],
 "properties":{"n":{"type":"integer","default":12345678901234567890},"of":{"type":"object","properties":{"size":{"$ref":"#/$defs/size"}}},
 "list":{"type":"array","items":{"properties":{"x":{"default":[1]}}}},"self":{"$ref":"#"},"either":{"anyOf":[{"properties":{"x":{"default":1}}}]}}}`
	for input, want := range map[string]string{
		``:        `{"also":null,"n":12345678901234567890}`,
		`{"n":1}`: `{"also":null,"n":1}`,
		`{"n":1,"also":2,"of":{},"list":[{},{"x":2},3],"either":{}}`: `{"also":2,"either":{},"list":[{"x":[1]},{"x":2},3],"n":1,"of":{"size":"big"}}`,
		`{"n":1,"also":2,"self":{"self":{"also":1}}}`:                `{"also":2,"n":1,"self":{"also":null,"n":12345678901234567890,"self":{"also":1,"n":12345678901234567890}}}`,
		`{"n":1,"also":2}`: `{"n":1,"also":2}`,
	} {
		got, err := typed.Input(json.RawMessage(form), json.RawMessage(input))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", input, got, err)
		}
	}
	if _, err := typed.Input(json.RawMessage(form), json.RawMessage(`{"n":"x"}`)); err == nil || !strings.Contains(err.Error(), "at /n: want integer, got string") {
		t.Errorf("%v", err)
	}
}

const fields = `{"phase":"3","n":12345678901234567890,"yes":true,"none":null,"deep":{"a":{"b-c":"x"}},"list":["p",{"q":1}],"loop":"{{phase}}","ä":"ü","html":"<&>"}`

func TestFill(t *testing.T) {
	for _, c := range []struct{ text, want, fails string }{
		{"no placeholder {x} {{", "no placeholder {x} {{", ""},
		{".planning/{{phase}}/*-{{ phase }}.md", ".planning/3/*-3.md", ""},
		{"{{n}} {{yes}} {{html}}", `12345678901234567890 true <&>`, ""},
		{"{{deep.a.b-c}} {{list.0}} {{list.1.q}} {{ä}}", "x p 1 ü", ""},
		{"{{loop}}", `\{\{phase\}\}`, ""},
		{"{{{phase}}}", "{3}", ""},
		{"{{nope}} {{deep.x}} {{list.7}} {{nope}} {{phase.x}} {{ .Go }} {{}}", "", "needs nope, deep.x, list.7, phase.x, .Go, , which"},
		{"{{none}}", "", "no text, number or boolean"},
		{"{{list}}", "", "no text, number or boolean"},
	} {
		got, err := typed.FillGlob(c.text, json.RawMessage(fields))
		if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s:\n%s %v\nwant\n%s %s", c.text, got, err, c.want, c.fails)
		}
	}
	if got, err := typed.FillGlob("{{a}}", nil); got != "" || err == nil {
		t.Errorf("without an input: %q %v", got, err)
	}
}

func TestFillStaysInside(t *testing.T) {
	for _, c := range []struct{ pattern, value, want string }{
		{"a/{{x}}/b", `"3"`, "a/3/b"},
		{"a/{{x}}/b", `7`, "a/7/b"},
		{"a/{{input.x}}/b", `7`, "a/7/b"},
		{"a/{{input.y}}/b", `7`, ""},
		{"a/{{x}}", `"b/c"`, "a/b/c"},
		{"a/{{x}}", `"v1..v2"`, "a/v1..v2"},
		{"a/{{x}}-*.md", `"[1]*?{a,b}"`, `a/\[1\]\*\?\{a\,b\}-*.md`},
		{"a/{{x}}", `".."`, ""},
		{"a/{{x}}", `"b/../../c"`, ""},
		{"a/{{x}}", `"."`, ""},
		{"a/{{x}}", `""`, ""},
		{"a/{{x}}", `"/etc"`, ""},
		{"a/{{x}}", `"b/"`, ""},
		{"a/{{x}}", `"b//c"`, ""},
		{"a/{{x}}", `"a\u0000"`, ""},
		{"a/{{x}}", `"a\n"`, ""},
		{"a/{{x}}", `"..\\..\\c"`, ""},
		{"a/{{x}}", `null`, ""},
		{"a/{{x}}", `["b"]`, ""},
		{"a/{{y}}", `"b"`, ""},
		{"{{x}}/b", `"~root"`, ""},
		{"a/.{{x}}/b", `".x"`, "a/..x/b"},
	} {
		input := json.RawMessage(`{"x":` + c.value + `}`)
		got, err := typed.FillGlob(c.pattern, input)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s with %s: %q, %v", c.pattern, c.value, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	}
	// What is built of two values is looked at as a whole.
	if got, err := typed.FillGlob("a/{{x}}{{y}}", json.RawMessage(`{"x":"b","y":"c"}`)); got != "a/bc" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if got, err := typed.FillGlob("{{a}}", json.RawMessage(`{"a":"{{b}}","b":"../x"}`)); got != `\{\{b\}\}` || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

func FuzzFill(f *testing.F) {
	f.Add("a/{{x}}/{{y.0}}", fields)
	f.Add("{{x}}{{x}}", `{"x":".."}`)
	f.Fuzz(func(t *testing.T, text, input string) {
		got, err := typed.FillGlob(text, json.RawMessage(input))
		if err != nil {
			return
		}
		if !strings.Contains(text, "{{") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if strings.HasPrefix(got, "/") || slices.Contains(strings.Split(got, "/"), "..") {
			t.Errorf("%q with %s became %q", text, input, got)
		}
		if !strings.Contains(text, "\x00") && strings.Contains(got, "\x00") {
			t.Errorf("%q with %s holds NUL", text, input)
		}
	})
}
