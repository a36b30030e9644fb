package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"goclaw"
)

// answer is what the model says or calls next.
type answer struct {
	text  string // with its label; "" when there are calls
	calls []call
}

type call struct {
	tool string
	args map[string]any
}

func say(format string, args ...any) answer {
	return answer{text: Label + fmt.Sprintf(format, args...)}
}

// exchange is a tool call with its result.
type exchange struct {
	call   goclaw.ToolCall
	result goclaw.ToolResult
}

// arg is the call's argument of that name, if it is a string.
func (e exchange) arg(name string) string {
	var args map[string]any
	if json.Unmarshal([]byte(e.call.Arguments), &args) != nil {
		return ""
	}
	s, _ := args[name].(string)
	return s
}

// view is what the model makes of a request.
type view struct {
	messages []goclaw.Message
	tools    map[string]bool
	worker   bool
	input    string       // the newest text from the other side, or a worker's task
	rounds   [][]exchange // the calls made since, by reply
}

func decide(req goclaw.ModelRequest) answer {
	if compaction(req) {
		return compact(req)
	}
	v := look(req)
	switch {
	case v.worker:
		return v.work()
	case strings.HasPrefix(v.input, heartbeatMark):
		return answer{text: heartbeatOK}
	}
	return v.serve()
}

const (
	workerMark    = "[Subagent Context]"
	jobMark       = "[Cron Context]" // a worker that the clock has started
	taskMark      = "[Subagent Task]:"
	heartbeatMark = "This is a heartbeat"
	heartbeatOK   = "HEARTBEAT_OK" // says that there is nothing to tell
)

func look(req goclaw.ModelRequest) view {
	v := view{messages: req.Messages, tools: map[string]bool{}}
	for _, t := range req.Tools {
		v.tools[t.Name] = true
	}
	first, newest := true, -1
	for i, m := range req.Messages {
		text := saidBy(m)
		if text == "" {
			continue
		}
		if first {
			v.worker = strings.HasPrefix(text, workerMark) || strings.HasPrefix(text, jobMark)
			first = false
		}
		newest, v.input = i, text
	}
	if v.worker {
		if _, task, ok := strings.Cut(v.input, taskMark); ok {
			v.input = strings.TrimSpace(task)
		}
	}
	v.rounds = roundsOf(req.Messages[newest+1:])
	return v
}

// saidBy is the text that the other side says in m, "" if m is the model's own
// or holds nothing but results.
func saidBy(m goclaw.Message) string {
	if m.Role != goclaw.RoleUser {
		return ""
	}
	var texts []string
	for _, p := range m.Parts {
		if p.Kind != goclaw.PartText {
			continue
		}
		if t := withoutTurn(p.Text); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}

// The gateway puts what changes from turn to turn (the time, the channel) in
// front of the text, between these.
const (
	turnOpen  = "<turn_context>"
	turnClose = "</turn_context>"
)

// filesOpen begins what it puts after the text: the files that it mentions.
const filesOpen = "\n\n<file path="

// withoutTurn is what is said, without what the gateway adds to a turn.
func withoutTurn(text string) string {
	text, _, _ = strings.Cut(text, filesOpen)
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, turnOpen) {
		if _, said, ok := strings.Cut(text, turnClose); ok {
			return strings.TrimSpace(said)
		}
	}
	return text
}

// roundsOf pairs the calls of each reply with their results.
func roundsOf(messages []goclaw.Message) [][]exchange {
	results := map[string]goclaw.ToolResult{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind == goclaw.PartToolResult && p.Result != nil {
				results[p.Result.CallID] = *p.Result
			}
		}
	}
	var rounds [][]exchange
	for _, m := range messages {
		var round []exchange
		for _, c := range m.Calls() {
			res, ok := results[c.ID]
			if !ok {
				res = goclaw.ToolResult{CallID: c.ID, Name: c.Name, IsError: true, Content: "no result was returned"}
			}
			round = append(round, exchange{c, res})
		}
		if len(round) > 0 {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// missing says which of the tools are not offered, "" if all are.
func (v view) missing(tools ...string) string {
	var names []string
	for _, t := range tools {
		if !v.tools[t] {
			names = append(names, t)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "the tool " + names[0] + " is not offered to me here"
	}
	return "the tools " + list(names) + " are not offered to me here"
}

// list joins names as in "a, b and c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// clip shortens s to at most n characters, on one side.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n])) + "…"
}

// clipBlock shortens a long text for display and says by how much.
func clipBlock(s string, n int) string {
	s = strings.TrimRight(s, "\n")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return fmt.Sprintf("%s\n[… %d more characters]", strings.TrimRight(string(r[:n]), "\n"), len(r)-n)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
