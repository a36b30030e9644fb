package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// Turn is what changes from turn to turn and therefore stands in the newest
// user message only.
type Turn struct {
	Run    goclaw.Run
	Text   string    // the input
	Now    time.Time // in the person's time zone
	Active []string  // names of the session's workers that are under way
	Typed  *Typed    // of a run with typed input or answer, or slices
}

// Typed is what a typed worker is told besides its task (seed 004: all that it
// needs is in its first message). A main session's turn has a form only.
type Typed struct {
	Slices string          // rendered
	Input  json.RawMessage // "" for none
	Form   string          // of the answer
}

// Envelope is the user message that opens a turn: a worker's first message, or
// a main session's input behind its delimited facts.
func Envelope(t Turn) goclaw.Message {
	if t.Run.Session.IsWorker() {
		return goclaw.Text(goclaw.RoleUser, workerEnvelope(t))
	}
	facts := []string{t.Now.Format(clock), "via " + via(t.Run)}
	if id := t.Run.Profile.Message; id != "" {
		facts = append(facts, "message "+id)
	}
	if len(t.Active) > 0 {
		facts = append(facts, "workers under way: "+strings.Join(t.Active, ", "))
	}
	head := strings.Join(facts, " | ")
	if t.Typed != nil {
		head += "\n" + t.Typed.Form
	}
	return goclaw.Text(goclaw.RoleUser, "<turn_context>\n"+head+factsEnd+t.Text)
}

// clock is how a moment is written for models.
const clock = "Monday 2006-01-02 15:04 -07:00"

const factsEnd = "\n</turn_context>\n\n"

// Said is the text that a main session's Envelope was made with.
func Said(m goclaw.Message) string {
	text := m.PlainText()
	if _, after, ok := strings.Cut(text, factsEnd); ok {
		return after
	}
	return text
}

func via(r goclaw.Run) string {
	switch {
	case r.Trigger != goclaw.TriggerUser:
		return string(r.Trigger)
	case r.Session.Kind == goclaw.KindChannel:
		return r.Session.Channel + " " + r.Session.PeerKind
	case r.Session.Kind == goclaw.KindAPI:
		return "api"
	}
	return "chat"
}

func workerEnvelope(t Turn) string {
	r, task := t.Run, cmp.Or(t.Text, t.Run.Task)
	var b strings.Builder
	if r.Trigger == goclaw.TriggerCron {
		cronContext(&b, r, t.Now)
	} else {
		spawnContext(&b, r)
	}
	if t.Typed != nil {
		t.Typed.write(&b, r.Context, task)
		return b.String()
	}
	if r.Context != "" {
		fmt.Fprintf(&b, "\nContext:\n%s\n", r.Context)
	}
	fmt.Fprintf(&b, "\n[Subagent Task]: %s", task)
	return b.String()
}

// cronContext is the first lines of a scheduled run's first message.
func cronContext(b *strings.Builder, r goclaw.Run, now time.Time) {
	fmt.Fprintf(b, "[Cron Context] You are running the scheduled job %q by yourself; nobody is in this chat. It is %s.\n",
		r.Name(), now.Format(clock))
	told := "Your last reply is kept on record"
	if !r.Requester.IsZero() {
		told = fmt.Sprintf("Your last reply is told to %s; reply only %s if there is nothing to tell", r.Requester, goclaw.NoReply)
	}
	fmt.Fprintf(b, "%s. | session: %s\n", told, r.Session)
}

// spawnContext is those of a spawned worker's.
func spawnContext(b *strings.Builder, r goclaw.Run) {
	fmt.Fprintf(b, "[Subagent Context] You are running as a subagent (depth %d/%d). "+
		"Results auto-announce to your requester; do not busy-poll for status.\n",
		r.Depth, max(r.Depth, r.Profile.MaxSpawnDepth))
	fmt.Fprintf(b, "Requester: %s | channel: %s | session: %s | label: %s\n",
		r.Requester, channelOf(r.Requester), r.Session, r.Name())
}

// write is seed 004's composite form; its SYSTEM part is the system prompt.
func (t *Typed) write(b *strings.Builder, context, task string) {
	if t.Slices != "" || context != "" {
		b.WriteString("\n# CONTEXT\n")
		for _, part := range []string{t.Slices, context} {
			if part = strings.TrimSpace(part); part != "" {
				b.WriteString("\n" + part + "\n")
			}
		}
	}
	fmt.Fprintf(b, "\n# TASK\n\n[Subagent Task]: %s\n", task)
	if t.Form != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(t.Form))
	}
	if len(t.Input) > 0 {
		fmt.Fprintf(b, "\n# INPUT\n\n%s\n", t.Input)
	}
}

func channelOf(k goclaw.SessionKey) string {
	if k.Kind == goclaw.KindChannel {
		return k.Channel
	}
	return string(k.Kind)
}
