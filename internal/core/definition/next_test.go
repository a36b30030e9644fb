package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/core/definition"
)

func parseNext(value string) definition.Definition {
	return definition.Parse("a.md", []byte("---\nname: a\ndescription: b\ngoclaw:\n  next: "+value+"\n---\nBody.\n"), definition.Options{})
}

func TestNext(t *testing.T) {
	for _, tc := range []struct{ value, want string }{
		{"executor", "5:9 executor []"},
		{"executor with artifacts [PLAN.md]", "5:9 executor [PLAN.md]"},
		{`"executor with artifacts [PLAN.md, docs/NOTES.md, PLAN.md]"`, "5:9 executor [PLAN.md docs/NOTES.md]"},
		{"executor with artifact [ PLAN.md ] then Security Reviewer with artifacts [C.md] then verifier", "5:9 executor [PLAN.md]\n5:9 Security Reviewer [C.md]\n5:9 verifier []"},
		{">-\n    executor with artifacts [P.md]\n    then verifier", "5:9 executor [P.md]\n5:9 verifier []"},
	} {
		d := parseNext(tc.value)
		var got []string
		for _, n := range d.Typed.Next {
			got = append(got, fmt.Sprintf("%d:%d %s %v", n.Line, n.Col, n.Agent, n.Artifacts))
		}
		if diff := cmp.Diff(strings.Split(tc.want, "\n"), got); diff != "" || d.Status != definition.StatusOK {
			t.Errorf("%s: %s%s", tc.value, d.Blocked(), diff)
		}
	}
}

func TestBadNext(t *testing.T) {
	for value, want := range map[string]string{
		"[executor]":                              "a.md:5:9: next is a list, not a text",
		"''":                                      "a.md:5:9: next names nobody",
		"executor then":                           "a.md:5:9: next names nobody",
		"then executor":                           "a.md:5:9: next names nobody",
		"executor with artifacts []":              `a.md:5:9: next holds "", which is no artifact's name`,
		"executor with artifacts [../P.md]":       `a.md:5:9: next holds "../P.md", which is no artifact's name`,
		"a then b with artefacts [P.md]":          `a.md:5:9: next can't be read at "b with artefacts [P.md]"`,
		"executor with artifacts [P.md] verifier": `next can't be read at`,
		"executor, verifier":                      `a.md:5:9: next can't be read at "executor, verifier"`,
	} {
		d := parseNext(value)
		if got := d.Blocked(); !strings.Contains(got, want) || d.Status != definition.StatusRejected {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	d := definition.Parse("a.md", []byte("---\nname: a\ndescription: b\nnext: executor\n---\nBody.\n"), definition.Options{})
	if want := "a.md:4:1: the key next does not stand at the top; put it under goclaw:"; d.Blocked() != want {
		t.Errorf("%s, want %s", d.Blocked(), want)
	}
}
