package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func TestPromptTable(t *testing.T) {
	p := goclaw.Prompt{
		Model: "p/m",
		Tools: []goclaw.ToolSpec{{Name: "exec", Schema: []byte("{}")}, {Name: "read", Description: "Read."}},
		Sections: []goclaw.Section{
			{ID: "identity", Source: "built-in", Tokens: 1234, Stable: true},
			{ID: "file:memory/2026-11-21.md", Source: "/ws/memory/2026-11-21.md", Tokens: 7},
			{ID: "runtime", Source: "built-in", Tokens: 5, Stable: true},
		},
		Omitted:  []goclaw.Omission{{Source: "/ws/MEMORY.md", Why: "empty"}},
		Warnings: []string{"SOUL.md: cut"},
	}
	lines(t, gateway.PromptTable(p),
		"SECTION                    TOKENS  STABLE  SOURCE",
		"tools                           5  yes     exec read",
		"identity                     1234  yes     built-in",
		"------------------------- the cached prefix ends here: 1239 tokens",
		"file:memory/2026-11-21.md       7  no      /ws/memory/2026-11-21.md",
		"runtime                         5  yes     built-in",
		"total                        1251  tools 5, system 1246; model p/m",
		"left out: /ws/MEMORY.md (empty)",
		"warning: SOUL.md: cut",
	)
	p.Sections, p.Tools, p.Omitted, p.Warnings = p.Sections[:1], nil, nil, nil
	lines(t, gateway.PromptTable(p),
		"SECTION               TOKENS  STABLE  SOURCE",
		"identity                1234  yes     built-in",
		"-------------------- the cached prefix ends here: 1234 tokens",
		"total                   1234  tools 0, system 1234; model p/m",
	)
}

func TestDiffText(t *testing.T) {
	d := goclaw.SentDiff{
		Bytes: 10, Tokens: 3, Before: "in ",
		A:      goclaw.SentSide{Session: mainKey, RunID: "0001-run", Step: 2, Model: "p/m", Bytes: 20, Part: "section file:USER.md", After: "Rome\n."},
		B:      goclaw.SentSide{Session: mainKey, Model: "p/m", Bytes: 30, Part: "section file:USER.md", After: "Oslo"},
		Fields: []string{"max_tokens", "model"},
	}
	lines(t, gateway.DiffText(d),
		"differs: the first 10 bytes (3 tokens) are equal; the next one is in section file:USER.md",
		"after `in `",
		`A has "Rome\n." (section file:USER.md)`,
		"B has `Oslo` (section file:USER.md)",
		"A: agent:main:main, run 0001-run, model call 2; p/m; 20 bytes",
		"B: agent:main:main, its next turn; p/m; 30 bytes",
		"other fields that differ: max_tokens, model",
	)
	d.A.Part, d.A.After, d.Fields = "", "", nil
	lines(t, gateway.DiffText(d),
		"differs: the first 10 bytes (3 tokens) are equal",
		"after `in `",
		"A has nothing more",
		"B has `Oslo` (section file:USER.md)",
		"A: agent:main:main, run 0001-run, model call 2; p/m; 20 bytes",
		"B: agent:main:main, its next turn; p/m; 30 bytes",
	)
	d.Equal, d.B.Part = true, ""
	lines(t, gateway.DiffText(d),
		"equal: 10 bytes (3 tokens) of tools, system prompt and messages",
		"A: agent:main:main, run 0001-run, model call 2; p/m; 20 bytes",
		"B: agent:main:main, its next turn; p/m; 30 bytes",
	)
}

func TestContextDiff(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	if diff, err := d.ContextDiff(ctx, "agent:main:main", "agent:second:main"); err != nil || !diff.Equal || diff.A.RunID != "" || diff.B.Session.Agent != "second" {
		t.Errorf("sessions without runs: %+v, %v", diff, err)
	}
	turn := d.say("go")
	worker := d.spawn(d.begin(turn.ID), "one", goclaw.AnnounceTogether)
	d.end(worker.ID, ending{result: "done"})
	d.end(turn.ID, ending{result: "ok"})
	d.say("nothing is sent of this one yet")

	diff, err := d.ContextDiff(ctx, "agent:main:main", "0002#3")
	if err != nil || diff.Equal || diff.A.RunID != turn.ID || diff.B.RunID != worker.ID || diff.B.Step != 3 || diff.B.Model != "p/small" {
		t.Fatalf("%+v, %v", diff, err)
	}
	if want := "You are kind." + `{"role":"user","content":"hello agent:main:`; diff.Bytes != len(want) || diff.A.Part != "message 1 (user)" || diff.A.After != `main"}` {
		t.Errorf("%+v", diff)
	}
	for _, bad := range []string{"0001#", "0001#0", "0001#x", "agent:nope", "agent:third:main"} {
		if _, err := d.ContextDiff(ctx, "0001", bad); !goclaw.IsBadRequest(err) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, none := range []string{"ffff", "0003"} {
		if _, err := d.ContextDiff(ctx, none, "0001"); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("%s: %v", none, err)
		}
	}
	for name, want := range map[string]string{"agent:main:main": turn.ID, "0002": worker.ID, "0002#5": worker.ID} {
		if s, err := d.AsSent(ctx, name, 0); err != nil || s.Run.ID != want {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if s, err := d.AsSent(ctx, "0002", 4); err != nil || s.Step != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if got := d.command("/context diff 0001 0002"); !strings.HasPrefix(got, "differs: ") {
		t.Error(got)
	}
	for _, bad := range []string{"/context all", "/context diff 0001", "/context diff 0001 0002 0001"} {
		if err := d.refusal(bad); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "diff A B") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A chat shows nothing of sessions that are none of its business.
func TestContextDiffKeepsToItsSession(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	turn := d.say("go")
	d.end(turn.ID, ending{result: "ok"})
	group, err := goclaw.ParseSessionKey("agent:main:telegram:group:7")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"/context diff 0001 0001", "/context diff agent:main:telegram:group:7 agent:main:main"} {
		receipt, err := d.Receive(ctx, goclaw.Inbound{Session: group, Text: text})
		if !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "can't be shown here: only the agent's main session") || strings.Contains(receipt.Reply, "kind") {
			t.Errorf("%s: %+v, %v", text, receipt, err)
		}
	}
	if err := d.refusal("/context diff agent:second:main agent:main:main"); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "another agent") {
		t.Error(err)
	}
	if got := d.command("/context diff agent:main:telegram:group:7 0001"); !strings.HasPrefix(got, "differs: ") {
		t.Error(got)
	}
}
