package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"goclaw/internal/core/schema"
)

const deep = `{"type":"object","required":["steps","mode"],"additionalProperties":false,
 "$defs":{"step":{"type":"object","required":["do"],"properties":{"do":{"type":"string","minLength":2},"next":{"$ref":"#/$defs/step"}}}},
 "properties":{"steps":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/step"}},"mode":{"enum":["fast","slow",null]},
  "one":{"const":1},"share":{"type":"number","minimum":0,"maximum":1},"a/b":{"type":["string","null"]},"re":{"type":"string","pattern":"^x+$"},
  "either":{"anyOf":[{"type":"string"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}]},
  "map":{"type":"object","additionalProperties":{"type":"integer"}}}}`

func problems(t *testing.T, spec, value string) string {
	t.Helper()
	s, err := schema.Compile([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	found := s.Problems(v)
	lines := make([]string, len(found))
	for i, p := range found {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func TestProblems(t *testing.T) {
	for value, want := range map[string]string{
		`{"steps":[{"do":"it"}],"mode":null,"one":1,"share":0.5,"a/b":null,"re":"xx","either":{"id":1},"map":{"k":2}}`: "",
		`[]`: `want object, got array`,
		`{}`: `"steps" (array) is missing` + "\n" + `"mode" is missing`,
		`{"steps":[{"do":"it"},{"do":"x","next":{"next":{}}}],"mode":"fast"}`: "at /steps/1/do: want at least 2 characters, got 1\nat /steps/1/next: \"do\" (string) is missing\nat /steps/1/next/next: \"do\" (string) is missing",
		`{"steps":[],"mode":"quick"}`:                                         "at /mode: \"quick\" is not one of \"fast\", \"slow\", null\nat /steps: want at least 1 items, got 0",
		`{"steps":[{"do":"it"}],"mode":"fast","stepz":1}`:                     `"stepz" is not allowed (did you mean "steps"?)`,
		`{"steps":[{"do":"it"}],"mode":"fast","one":2}`:                       `at /one: want 1, got 2`,
		`{"steps":[{"do":"it"}],"mode":"fast","share":1.5}`:                   `at /share: 1.5 is more than 1`,
		`{"steps":[{"do":"it"}],"mode":"fast","a/b":1}`:                       `at /a~1b: want string or null, got integer`,
		`{"steps":[{"do":"it"}],"mode":"fast","either":{}}`:                   `at /either: "id" (integer) is missing`,
		`{"steps":[{"do":"it"}],"mode":"fast","map":{"k":""}}`:                `at /map/k: want integer, got string`,
	} {
		if got := problems(t, deep, value); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", value, got, want)
		}
	}
	// What only the library knows is told in its words.
	if got := problems(t, deep, `{"steps":[{"do":"it"}],"mode":"fast","re":"y"}`); !strings.Contains(got, "pattern") || strings.Contains(got, "\n") {
		t.Errorf("pattern: %q", got)
	}
}

func TestOneOfFitsTwice(t *testing.T) {
	got := problems(t, `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":2}`)
	if !strings.Contains(got, "fits more than one of the alternatives") || strings.Contains(got, "anonymous") {
		t.Errorf("%q", got)
	}
}

// What would let anything pass, or be told in the library's words, is named
// with its place.
func TestFlaws(t *testing.T) {
	for spec, want := range map[string]string{
		`null`:            `null is no schema; write a map such as {type: string}`,
		`{"type":"text"}`: `"type" can't be "text"; write one of array, boolean, integer, null, number, object, string (at /type)`,
		`{"properties":{"a":{"type":["string","nil"]}}}`:        `"type" can't be "nil"; write one of`,
		`{"properties":{"a":"integer"}}`:                        `"integer" is no schema; write a map such as {type: integer} (at /properties/a)`,
		`{"properties":["a"]}`:                                  `"properties" can't be an array; write a map of names to schemas (at /properties)`,
		`{"requird":["a"]}`:                                     `"requird" is no keyword of JSON Schema; did you mean "required"? (at /requird)`,
		`{"items":{"enums":[1]}}`:                               `"enums" is no keyword of JSON Schema; did you mean "enum"? (at /items/enums)`,
		`{"$defs":{"a/b":{"defs":{}}}}`:                         `did you mean "$defs"? (at /$defs/a~1b/defs)`,
		`{"required":"a"}`:                                      `"required" can't be a string; write a list of names`,
		`{"required":[1]}`:                                      `"required" can't hold a number`,
		`{"enum":[]}`:                                           `"enum" can't be an empty list`,
		`{"oneOf":{"type":"string"}}`:                           `"oneOf" can't be an object; write a list of schemas`,
		`{"anyOf":[{},{"minLength":-1}]}`:                       `"minLength" can't be -1; write a whole number from 0 (at /anyOf/1/minLength)`,
		`{"maximum":"3"}`:                                       `"maximum" can't be a string; write a number`,
		`{"pattern":1}`:                                         `"pattern" can't be a number; write a text`,
		`{"uniqueItems":1}`:                                     `"uniqueItems" can't be a number; write true or false`,
		`{"properties":{"a":{"type":"integer","default":"x"}}}`: `a default does not fit its schema: `,
	} {
		_, err := schema.Compile([]byte(spec))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "anonymous") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	// Annotations, and properties of any name, are nobody's mistake.
	for _, spec := range []string{
		`true`, `{"id":"x","note":1,"titel":"x","x-order":2,"examples":[1],"properties":{"requird":{},"enums":{},"item":true}}`,
		`{"items":[{"type":"string"}],"additionalItems":false}`, `{"type":["string","null"],"const":null,"if":{},"then":{},"else":false}`,
	} {
		if _, err := schema.Compile([]byte(spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestProblemsAreFew(t *testing.T) {
	value := `[` + strings.TrimSuffix(strings.Repeat(`"x",`, 1000), ",") + `]`
	if got := strings.Count(problems(t, `{"items":{"type":"integer"}}`, value), "\n") + 1; got != 10 {
		t.Errorf("%d problems", got)
	}
}

func TestCompileRefuses(t *testing.T) {
	loop := `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{}]}}}`
	many := `{"$defs":{"p0":{}`
	for i := range 40 {
		from, to := string(rune('0'+i%10)), string(rune('0'+(i+1)%10))
		many += `,"p` + strings.Repeat("x", (i+1)/10) + to + `":{"allOf":[{"$ref":"#/$defs/p` + strings.Repeat("x", i/10) + from + `"},{"$ref":"#/$defs/p` + strings.Repeat("x", i/10) + from + `"}]}`
	}
	for spec, want := range map[string]string{
		`{"$ref":"#"}`:                        "leads back to itself",
		loop:                                  "leads back to itself",
		many + "}}":                           "multiply",
		`{"properties":{"a":{"$ref":"#/x"}}}`: "leads nowhere",
		`{"$ref":"https://example.com/x"}`:    "leads nowhere",
		`{"properties":{"a":{"$id":"https://example.com/a"}}}`:  "$id",
		`{"$dynamicRef":"#x"}`:                                  "$dynamicRef",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`: "$schema",
		`{"type":3}`:                "",
		`{"pattern":"("}`:           "",
		`{"properties":{"a":null}}`: "",
	} {
		if _, err := schema.Compile([]byte(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something with %q", clipped(spec), err, want)
		}
	}
	for _, spec := range []string{`true`, `{"items":{"$ref":"#"}}`, `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`} {
		if _, err := schema.Compile([]byte(spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func clipped(s string) string { return s[:min(len(s), 80)] }

// FuzzProblems holds any value against any schema: no panic, no endless loop,
// and what is wrong is always worded in one line.
func FuzzProblems(f *testing.F) {
	f.Add(deep, `{"steps":[{"do":"x"}]}`)
	f.Add(`{"items":{"$ref":"#"}}`, `[[[1]]]`)
	f.Add(`{"multipleOf":0.1,"uniqueItems":true}`, `[1e300,1]`)
	f.Fuzz(func(t *testing.T, spec, value string) {
		s, err := schema.Compile([]byte(spec))
		if err != nil {
			return
		}
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			return
		}
		for _, p := range s.Problems(v) {
			if p.What == "" || strings.ContainsAny(p.What, "\n\r") {
				t.Errorf("%q", p.What)
			}
		}
	})
}
