package sessions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"goclaw"
)

// ask calls a tool for a session.
func (b *bench) ask(tool string, who goclaw.SessionKey, arguments map[string]any) goclaw.ToolResult {
	b.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		b.Fatal(err)
	}
	return b.tool(tool).Call(b.Context(), goclaw.Invocation{Call: goclaw.ToolCall{ID: "h", Name: tool, Arguments: string(raw)}, Session: who})
}

// talk records a turn of a session: what was said, and a tool's result.
func (b *bench) talk(r goclaw.Run, text, reply, result string) {
	b.Helper()
	r = b.begin(b.accept(r))
	err := b.store.End(b.Context(), r.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Result: reply, Batch: goclaw.Batch{Now: now(), Events: []goclaw.Event{
		{Seq: 0, Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, text)}},
		{Seq: 1, Kind: goclaw.EventResult, Result: &goclaw.ToolResult{Name: "read", Content: result}},
		{Seq: 2, Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, reply)}},
		{Seq: 3, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: reply}},
	}}})
	if err != nil {
		b.Fatal(err)
	}
}

func TestHistoryIsSearched(t *testing.T) {
	b := newBench(t)
	chat := goclaw.APIKey("main", "chat")
	b.talk(goclaw.Run{Session: chat, Trigger: goclaw.TriggerUser}, "We call it Projekt ÄTNA", "noted", strings.Repeat("x", 5000)+" the Needle "+strings.Repeat("y", 5000))
	if err := b.store.ChangeSession(t.Context(), chat, goclaw.SessionChange{Reset: true}, now()); err != nil {
		t.Fatal(err)
	}
	b.refuses(b.ask("sessions_history", chat, map[string]any{"sessionKey": chat.String()}), "with query you search")
	b.talk(goclaw.Run{Session: chat, Trigger: goclaw.TriggerUser}, "and now?", "still Ätna", "nothing")
	var lines []struct{ Role, Text, At string }
	search := func(query string, limit int) {
		t.Helper()
		lines = nil
		res := b.ask("sessions_history", chat, map[string]any{"sessionKey": chat.String(), "query": query, "limit": limit})
		if err := json.Unmarshal([]byte(res.Content), &lines); err != nil || res.IsError {
			t.Fatalf("%s: %+v", query, res)
		}
	}
	search("ätna", 20)
	if len(lines) != 2 || lines[0].Text != "We call it Projekt ÄTNA" || lines[0].Role != "user" || lines[1].Text != "still Ätna" || lines[0].At == "" {
		t.Errorf("%+v", lines)
	}
	search("ätna", 1)
	if len(lines) != 1 || lines[0].Text != "still Ätna" {
		t.Errorf("not the newest: %+v", lines)
	}
	search("nEEDLE", 20)
	if len(lines) != 1 || len(lines[0].Text) > 700 || !strings.Contains(lines[0].Text, " the Needle ") || lines[0].Role != "tool" {
		t.Errorf("%+v", lines)
	}
	b.refuses(b.ask("sessions_history", chat, map[string]any{"sessionKey": chat.String(), "query": "absent"}), "nothing in this session")
	b.says(b.ask("sessions_history", chat, map[string]any{"sessionKey": chat.String()}), "and now?", "still Ätna")
}

// Who may read what is Access's to say; the list shows nothing else.
func TestSessionsOfOthers(t *testing.T) {
	b := newBench(t)
	const canary = "CANARY"
	chat, other, foreign := goclaw.APIKey("main", "chat"), goclaw.APIKey("main", "other"), goclaw.MainKey("second")
	own, others, abroad := goclaw.SubagentKey("main", "own"), goclaw.SubagentKey("main", "others"), goclaw.SubagentKey("second", "abroad")
	for _, r := range []goclaw.Run{
		{Session: chat}, {Session: other}, {Session: foreign}, {Session: mainKey},
		{Session: own, Trigger: goclaw.TriggerSpawn, Requester: chat},
		{Session: others, Trigger: goclaw.TriggerSpawn, Requester: mainKey},
		{Session: abroad, Trigger: goclaw.TriggerSpawn, Requester: mainKey},
	} {
		if r.Trigger == "" {
			r.Trigger = goclaw.TriggerUser
		}
		if r.Session == mainKey {
			continue // the bench's own turn is under way
		}
		b.talk(r, canary+" in "+r.Session.String(), "ok", "")
	}
	all := []goclaw.SessionKey{mainKey, chat, other, foreign, own, others, abroad}
	for who, sees := range map[goclaw.SessionKey][]goclaw.SessionKey{
		mainKey:                       {mainKey, chat, other, own, others, abroad},
		chat:                          {chat, own},
		other:                         {other},
		own:                           {own},
		foreign:                       {foreign, abroad},
		goclaw.CronKey("main", "job"): {},
	} {
		may := map[goclaw.SessionKey]bool{}
		for _, k := range sees {
			may[k] = true
		}
		list := b.ask("sessions_list", who, map[string]any{"limit": 100}).Content
		for _, k := range all {
			if got := strings.Contains(list, fmt.Sprintf("%q", k)); got != may[k] {
				t.Errorf("%s is listed %s: %v", who, k, got)
			}
			if k == mainKey {
				continue
			}
			for _, query := range []string{"", "canary"} {
				res := b.ask("sessions_history", who, map[string]any{"sessionKey": k.String(), "query": query})
				if got := strings.Contains(res.Content, canary); got != may[k] || res.IsError == may[k] {
					t.Errorf("%s reads %s (query %q): %+v", who, k, query, res)
				}
			}
		}
	}
}
