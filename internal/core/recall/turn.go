package recall

import (
	"strings"

	"goclaw"
	"goclaw/internal/core/prompt"
)

// TurnPrefix begins the paths of recorded turns.
const TurnPrefix = "session:"

// TurnPath is where a recorded turn is found.
func TurnPath(r goclaw.Run) string { return TurnPrefix + r.Session.String() + "#" + r.ID }

// ParseTurnPath reads what TurnPath wrote.
func ParseTurnPath(path string) (key goclaw.SessionKey, run string, ok bool) {
	rest, ok := strings.CutPrefix(path, TurnPrefix)
	cut := strings.LastIndexByte(rest, '#')
	if !ok || cut < 0 {
		return goclaw.SessionKey{}, "", false
	}
	key, err := goclaw.ParseSessionKey(rest[:cut])
	return key, rest[cut+1:], err == nil && rest[cut+1:] != ""
}

// maxSaid bounds one message of a turn that is indexed, in bytes: beyond it is
// what was pasted, not what was said.
const maxSaid = 20_000

// TurnText is what was said in a turn, by whom; "" for one in which nothing was.
// What tools returned is left out.
func TurnText(r goclaw.Run, events []goclaw.Event) string {
	var parts []string
	say := func(who, text string) {
		if text = strings.TrimSpace(text); text == "" || text == goclaw.NoReply {
			return
		}
		if len(text) > maxSaid {
			text = strings.ToValidUTF8(text[:maxSaid], "")
		}
		parts = append(parts, who+": "+text)
	}
	answered := false
	for _, e := range events {
		switch {
		case e.Prompt != nil && r.Trigger == goclaw.TriggerUser:
			say("User", prompt.Said(e.Prompt.Input))
		case e.Prompt != nil && r.Trigger == goclaw.TriggerAnnouncement:
			say("Workers", prompt.Said(e.Prompt.Input))
		case e.Model != nil:
			before := len(parts)
			say("Assistant", e.Model.Message.PlainText())
			answered = answered || len(parts) > before
		case e.End != nil && e.End.Returned:
			return ""
		}
	}
	if !answered && r.Trigger != goclaw.TriggerUser {
		return ""
	}
	return strings.Join(parts, "\n\n")
}
