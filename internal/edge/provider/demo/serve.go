package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"goclaw"
)

const help = `Hello. I'm the built-in demonstration: a few fixed rules, no intelligence, no network. What I do is done with the real tools, on your real files. Try:

- research tides and glaciers with two workers
- read AGENTS.md
- list files
- find WORD
- run COMMAND
- remember FACT
- status

For a real assistant run goclaw setup, or set ANTHROPIC_API_KEY or OPENAI_API_KEY and start again.`

var rememberOrder = regexp.MustCompile(`(?is)^(?:remember|note)(?:\s+(?:that|this))?\s*:?\s+(\S.*)$`)

// serve answers a person, or the announcements of workers.
func (v view) serve() answer {
	if reports := parseReports(v.input); len(reports) > 0 {
		return v.combine(reports)
	}
	if o, ok := parseResearch(v.input); ok {
		return v.delegate(o)
	}
	if m := rememberOrder.FindStringSubmatch(courtesy.ReplaceAllString(v.input, "")); m != nil {
		return v.remember(oneLine(m[1]))
	}
	if cmd, ok := parseCommand(v.input); ok {
		return v.perform(cmd)
	}
	return say("%s", help)
}

const memoryFile = "MEMORY.md"

// remember reads MEMORY.md and appends a line to it. It replaces nothing but
// the last line, so that a file which was read in part only loses nothing.
func (v view) remember(fact string) answer {
	if why := v.missing("read", "edit", "write"); why != "" {
		return say("I can't remember that: %s.", why)
	}
	switch len(v.rounds) {
	case 0:
		return answer{calls: []call{{"read", map[string]any{"path": memoryFile}}}}
	case 1:
		read := v.rounds[0][0].result
		if read.IsError && !strings.Contains(strings.ToLower(read.Content), "not exist") &&
			!strings.Contains(strings.ToLower(read.Content), "no such file") &&
			!strings.Contains(strings.ToLower(read.Content), "not found") {
			return say("I could not read %s: %s", memoryFile, clipBlock(read.Content, 500))
		}
		lines := readLines(read.Content)
		if read.IsError || strings.TrimSpace(read.Content) == "" || isNote(read.Content) {
			return answer{calls: []call{{"write", map[string]any{"path": memoryFile, "content": "# Memory\n\n- " + fact + "\n"}}}}
		}
		last := anchor(lines)
		if last == "" {
			return say("I could not find a line in %s to write after. Add it there yourself: %s", memoryFile, fact)
		}
		return answer{calls: []call{{"edit", map[string]any{"path": memoryFile, "old": last, "new": last + "\n- " + fact}}}}
	}
	if wrote := v.rounds[len(v.rounds)-1][0].result; wrote.IsError {
		return say("I could not write to %s: %s", memoryFile, clipBlock(wrote.Content, 500))
	}
	return say("I've added it to %s: %s", memoryFile, fact)
}

// anchor is the last line that occurs once only, so that an edit finds it.
func anchor(lines []line) string {
	whole := joinLines(lines)
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if l.number > 0 && strings.TrimSpace(l.text) != "" && strings.Count(whole, l.text) == 1 {
			return l.text
		}
	}
	return ""
}

// refusal is why a spawn was not accepted, "" if it was.
func refusal(res goclaw.ToolResult) string {
	var reply struct{ Status, Error string }
	if err := json.Unmarshal([]byte(res.Content), &reply); err != nil {
		if !res.IsError {
			return "the answer of sessions_spawn can't be read: " + clip(oneLine(res.Content), 200)
		}
		return clip(oneLine(res.Content), 300)
	}
	switch {
	case reply.Status == "accepted" && !res.IsError:
		return ""
	case reply.Error != "":
		return strings.TrimPrefix(fmt.Sprintf("%s: %s", reply.Status, clip(oneLine(reply.Error), 300)), ": ")
	case reply.Status != "":
		return reply.Status
	}
	return clip(oneLine(res.Content), 300)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
