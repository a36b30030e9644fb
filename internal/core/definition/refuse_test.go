package definition_test

import (
	"encoding/json"
	"errors"
	"testing"

	"goclaw/internal/core/definition"
)

func TestRefusedCalls(t *testing.T) {
	only := definition.Tools{Rules: []definition.Rule{
		{Tool: "exec", Pattern: "*", Action: definition.Deny}, {Tool: "exec", Pattern: "git:*", Action: definition.Allow}, {Tool: "exec", Pattern: "ls", Action: definition.Allow},
	}}
	never := definition.Tools{Rules: []definition.Rule{
		{Tool: "exec", Pattern: "rm:*", Action: definition.Deny}, {Tool: "exec", Pattern: "git push:*", Action: definition.Ask},
	}}
	for _, tc := range []struct {
		tools   definition.Tools
		command string
		refused string
	}{
		{only, "git status", ""},
		{only, "git", ""},
		{only, "  git log --oneline | git shortlog  ; ls\ngit diff", ""},
		{only, "GIT_PAGER=cat git log 2>&1", ""},
		{only, "git log > out.txt &", ""},
		{only, "gitk", "gitk"},
		{only, "git status; rm -rf x", "rm -rf x"},
		{only, "git status && curl x", "curl x"},
		{only, "git status | sh", "sh"},
		{only, "git status & sh", "sh"},
		{only, "git status\nsh", "sh"},
		{only, "git $(rm x)", "git $(rm x)"},
		{only, "git `rm x`", "git `rm x`"},
		{only, `git "$(rm x)"`, `git "$(rm x)"`},
		{only, "(rm x)", "(rm x)"},
		{only, "git diff <(rm x)", "git diff <(rm x)"},
		{only, "git log <<EOF\nrm x\nEOF", "git log <<EOF\nrm x\nEOF"},
		{only, `git commit -m "a; b | c && d"`, ""},
		{only, `git commit -m 'it is $(fine)'`, ""},
		{only, `git commit -m "open`, `git commit -m "open`},
		{only, `git commit -m \"; rm x`, "rm x"},
		{only, "", ""},
		{never, "echo hello", ""},
		{never, "ls; rm x", "rm x"},
		{never, "X=1 Y=2 rm x", "rm x"},
		{never, "git push origin", "git push origin"},
		{never, "git pull", ""},
		{never, "echo $(rm x)", "echo $(rm x)"},
	} {
		args, err := json.Marshal(map[string]string{"command": tc.command})
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.tools.Refuses("exec", string(args), nil); got != tc.refused {
			t.Errorf("%q: refused %q, want %q", tc.command, got, tc.refused)
		}
		if got := tc.tools.Refuses("read", `{"path":"x"}`, nil); got != "" {
			t.Errorf("rules on exec refuse read: %q", got)
		}
	}
	spawn := definition.Tools{Rules: []definition.Rule{{Tool: "sessions_spawn", Pattern: "*", Action: definition.Deny}, {Tool: "sessions_spawn", Pattern: "helper", Action: definition.Allow}}}
	if spawn.Refuses("sessions_spawn", `{"agent":"helper","task":"x"}`, nil) != "" || spawn.Refuses("sessions_spawn", `{"agent":"other","task":"x"}`, nil) != "other" {
		t.Error("rules on spawning")
	}
	if spawn.Refuses("sessions_spawn", `{"task":"x"}`, nil) == "" {
		t.Error("a plain worker is spawned where only a definition is allowed")
	}
	docs := definition.Tools{Rules: []definition.Rule{{Tool: "write", Pattern: "*", Action: definition.Deny}, {Tool: "write", Pattern: "docs/**", Action: definition.Allow}}}
	at := func(place string, err error) func() (string, error) {
		return func() (string, error) { return place, err }
	}
	for _, tc := range []struct {
		where   func() (string, error)
		refused string
	}{
		{at("docs/a", nil), ""},
		{at("src/a", nil), "src/a"},
		{at("", errors.New("outside")), "src/x"},
		{nil, "src/x"},
	} {
		if got := docs.Refuses("write", `{"path":"src/x"}`, tc.where); got != tc.refused {
			t.Errorf("refused %q, want %q", got, tc.refused)
		}
	}
}

func FuzzRefuses(f *testing.F) {
	f.Add("git status; rm x")
	f.Add(`git "a $(b)"`)
	only := definition.Tools{Rules: []definition.Rule{{Tool: "exec", Pattern: "*", Action: definition.Deny}, {Tool: "exec", Pattern: "git:*", Action: definition.Allow}}}
	f.Fuzz(func(_ *testing.T, command string) {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			return
		}
		only.Refuses("exec", string(args), nil)
	})
}
