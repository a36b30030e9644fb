package compact

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/turn"
)

//go:embed request.md
var request string

// Request is the message that asks the model for a summary of what stands
// before it. instructions are the person's own, or "".
func Request(instructions string) goclaw.Message {
	if instructions = strings.TrimSpace(instructions); instructions != "" {
		instructions = "\nThe person asks for this in particular: " + instructions
	}
	return goclaw.Text(goclaw.RoleUser, strings.TrimSpace(strings.Replace(request, "{{instructions}}", instructions, 1)))
}

// Parse takes summary and notes out of the model's reply; ok is false if there
// is no summary in it.
func Parse(reply string) (summary, notes string, ok bool) {
	notes, _ = element(reply, "notes")
	summary, ok = element(reply, "summary")
	return summary, notes, ok && summary != ""
}

// element returns what stands between the first opening and the last closing
// tag. A reply that was cut off may lack the last one.
func element(text, tag string) (string, bool) {
	_, rest, ok := strings.Cut(text, "<"+tag+">")
	if !ok {
		return "", false
	}
	if end := strings.LastIndex(rest, "</"+tag+">"); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimSpace(rest), true
}

const (
	maxFiles  = 60
	maxQuoted = 300
	maxTurns  = 200
)

// Files adds the files that the summarised runs wrote, from their record: no
// model can forget them.
func Files(logs []goclaw.RunLog, through int64) string {
	var paths []string
	for _, l := range logs {
		if l.Run.Ordinal > through {
			continue
		}
		for _, e := range l.Events {
			if e.Model == nil {
				continue
			}
			for _, c := range e.Model.Message.Calls() {
				var args struct{ Path string }
				if c.Name != "write" && c.Name != "edit" || json.Unmarshal([]byte(c.Arguments), &args) != nil || args.Path == "" {
					continue
				}
				paths = append(slices.DeleteFunc(paths, func(p string) bool { return p == args.Path }), args.Path)
			}
		}
	}
	if len(paths) == 0 {
		return ""
	}
	text := "\n\nFiles written or edited (from the record, oldest first): "
	if cut := len(paths) - maxFiles; cut > 0 {
		text += fmt.Sprintf("… and %d earlier ones, ", cut)
		paths = paths[cut:]
	}
	return text + strings.Join(paths, ", ")
}

// Digest stands for runs that no model has summarised, in at most most bytes:
// what was asked, and how each answer began. The summary from before gets up
// to half of the room, the newest turns the rest.
func Digest(logs []goclaw.RunLog, v turn.View, through int64, most int) string {
	const by, from = "(No model wrote this summary; it quotes the beginnings of the record.)", "From before: "
	text := by
	if before := strings.NewReplacer(by+"\n\n", "", from, "").Replace(v.Summary); before != "" {
		text += "\n\n" + from + clip(strings.TrimSpace(before), most/2)
	}
	var lines []string
	for _, l := range logs {
		if l.Run.Ordinal <= v.Through || l.Run.Ordinal > through || l.Run.Trigger == goclaw.TriggerCompact {
			continue
		}
		s := turn.Fold(l.Events)
		if s.Prompt == nil {
			continue
		}
		answered := "Answered: " + quote(l.Run.Result)
		if l.Run.State != goclaw.StateCompleted {
			answered = fmt.Sprintf("Ended: %s. %s", l.Run.State, quote(l.Run.Error))
		}
		lines = append(lines, "- Asked: "+quote(prompt.Said(s.Prompt.Input))+"\n  "+answered+"\n")
	}
	old, left := len(lines), most-len(text)-len(leftOut)
	for old > 0 && len(lines)-old < maxTurns && left >= len(lines[old-1]) {
		old--
		left -= len(lines[old])
	}
	if old > 0 {
		text += fmt.Sprintf(leftOut, old)
	}
	return strings.TrimSpace(text + "\n\n" + strings.Join(lines[old:], ""))
}

const leftOut = "\n\n[%d older turns are left out here; sessions_history has them]"

// clip keeps head and tail of a text that is too long: what a summary says
// first matters most, and what it says last is newest.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = " […] "
	keep := max(0, most-len(mark))
	return strings.ToValidUTF8(s[:keep/2], "") + mark + strings.ToValidUTF8(s[len(s)-keep/2:], "")
}

func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return text
}
