package demo

import (
	"strings"
	"testing"

	"goclaw"
)

const turnOfHeartbeat = "<turn_context>\nMonday 2026-01-05 07:00 +01:00 | via heartbeat\n</turn_context>\n\nThis is a heartbeat, no message from your person."

func TestHeartbeat(t *testing.T) {
	ask := func(messages ...goclaw.Message) string {
		t.Helper()
		reply, err := New().Stream(t.Context(), goclaw.ModelRequest{Model: Model, Tools: allTools(), Messages: messages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Message.PlainText()
	}
	earlier := []goclaw.Message{user("read a.md"), goclaw.Text(goclaw.RoleAssistant, "It is empty.")}
	if got := ask(append(earlier, user(turnOfHeartbeat))...); got != "HEARTBEAT_OK" {
		t.Errorf("%q", got)
	}
	// What was a heartbeat is none for the next message.
	if got := ask(user(turnOfHeartbeat), goclaw.Text(goclaw.RoleAssistant, "HEARTBEAT_OK"), user("hello")); !strings.HasPrefix(got, Label) {
		t.Errorf("%q", got)
	}
}

// What the clock has started works as what an agent has.
func TestScheduledTask(t *testing.T) {
	reply, err := New().Stream(t.Context(), goclaw.ModelRequest{Model: Model, Tools: allTools(), Messages: []goclaw.Message{
		user("[Cron Context] You are running the scheduled job \"Notes\" by yourself; nobody is in this chat.\n" +
			"Your last reply is kept on record. | session: agent:main:cron:notes\n\n[Subagent Task]: read notes/tides.md"),
	}}, nil)
	if calls := reply.Message.Calls(); err != nil || len(calls) != 1 || calls[0].Name != "read" || calls[0].Arguments != `{"path":"notes/tides.md"}` {
		t.Errorf("%+v %v", reply, err)
	}
	if reports := parseReports("[Cron: Notes] Complete.\n\nTides come twice a day."); len(reports) != 1 {
		t.Errorf("%+v", reports)
	}
}
