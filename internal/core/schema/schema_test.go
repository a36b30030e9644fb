package schema_test

import (
	"strings"
	"testing"

	"goclaw/internal/core/schema"
)

const spec = `{"type":"object","required":["path"],"properties":{
 "path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1},
 "mode":{"type":"string","enum":["fast","slow"]},"all":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}}}}`

func TestCheck(t *testing.T) {
	s, err := schema.Compile([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ args, problem string }{
		"good":       {`{"path":"a","limit":2,"mode":"fast","all":true,"tags":["x"]}`, ""},
		"no object":  {`[1]`, "not a JSON object"},
		"cut":        {`{"path":"a`, "not a JSON object"},
		"empty text": {``, `"path" is missing`},
		"null":       {`null`, "null"},
		"unknown":    {`{"path":"a","limt":1}`, `unknown argument "limt" (did you mean "limit"?)`},
		"type":       {`{"path":7}`, "want string, got integer"},
		"fraction":   {`{"path":"a","limit":1.5}`, "want integer, got number"},
		"enum":       {`{"path":"a","mode":"quick"}`, "not one of fast, slow"},
		"minimum":    {`{"path":"a","limit":0}`, "do not fit"},
		"deep":       {`{"path":"a","tags":[1]}`, "do not fit"},
		"blank":      {`{"path":""}`, "must not be empty"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := s.Check(tc.args)
			switch {
			case tc.problem == "" && err != nil:
				t.Error(err)
			case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)):
				t.Errorf("got %v, want something with %q", err, tc.problem)
			case err != nil && strings.Contains(err.Error(), "\n"):
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestCheckOfAnOpenSchema(t *testing.T) {
	for spec, problem := range map[string]string{
		`{"type":"object"}`:                 "",
		`{"type":"object","properties":{}}`: "unknown argument",
		`{"type":"object","properties":{"a":{}},"additionalProperties":true}`:                         "",
		`{"type":"object","properties":{"a":{}},"additionalProperties":false}`:                        "unknown argument",
		`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}`:            "do not fit",
		`{"type":"object","properties":{"a":{}},"patternProperties":{"^b":{}}}`:                       "",
		`{"type":"object","anyOf":[{"properties":{"a":{}}},{"properties":{"b":{"type":"integer"}}}]}`: "",
	} {
		s, err := schema.Compile([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(`{"b":7}`); (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", spec, err, problem)
		}
	}
}

func TestNear(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"limit", "limit", true}, {"limt", "limit", true}, {"limitt", "limit", true}, {"lomit", "limit", true},
		{"ilmit", "limit", true}, {"lmt", "limit", false}, {"path", "limit", false}, {"", "a", true}, {"", "ab", false},
	} {
		if got := schema.Near(tc.a, tc.b); got != tc.want {
			t.Errorf("Near(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	s, err := schema.Compile([]byte(spec))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"path":"a"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := s.Check(raw); err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("an error without words")
		}
	})
}

func TestSchemasOfAWrongForm(t *testing.T) {
	for spec, problem := range map[string]string{
		`{"properties":7}`:                        `JSON Schema: "properties" can't be a number`,
		`{"properties":{"a":{"required":"yes"}}}`: `can't be a string`,
		`[]`: "JSON Schema",
	} {
		_, err := schema.Compile([]byte(spec))
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "Go struct") {
			t.Errorf("%s: %v, want %q", spec, err, problem)
		}
	}
}
