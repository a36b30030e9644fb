package demo

import (
	"fmt"
	"regexp"
	"strings"
)

// command is an order that one tool call carries out.
type command struct {
	tool string
	args map[string]any
	done string // how to introduce the result
}

var (
	courtesy    = regexp.MustCompile(`(?i)^(?:(?:hi|hello|hey)[,!. ]+)?(?:(?:please|can you|could you|would you|will you|i want you to|i'd like you to)[, ]+)*`)
	readOrder   = regexp.MustCompile(`(?is)^(?:read|show|open|cat|print)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:file\s+)?(\S.*)$`)
	listOrder   = regexp.MustCompile(`(?i)^(?:ls|dir)(?:\s+(\S+))?$|^(?:list|show)\s+(?:me\s+)?(?:all\s+|the\s+|my\s+)*(?:files|folder|directory|workspace)(?:\s+(?:in|of|under)\s+(?:the\s+)?(?:(?:folder|directory)\s+)?(\S+))?$`)
	workersList = regexp.MustCompile(`(?i)^(?:list|show)\s+(?:me\s+)?(?:all\s+|the\s+|my\s+)*(?:workers|subagents|sub-agents)$|^(?:workers|subagents)$`)
	cancelOrder = regexp.MustCompile(`(?i)^(?:cancel|stop|kill)\s+(?:the\s+)?(?:worker\s+|subagent\s+|run\s+)?(\S+)$`)
	findOrder   = regexp.MustCompile(`(?is)^(?:find|search(?:\s+for)?|grep(?:\s+for)?|look\s+for)\s+(?:the\s+)?(?:word\s+|phrase\s+|text\s+)?(\S.*)$`)
	runOrder    = regexp.MustCompile(`(?is)^(?:(?:run|exec|execute)\s+|\$\s*)(?:the\s+command\s+|command\s+)?(?::\s*)?(\S.*)$`)
	statusOrder = regexp.MustCompile(`(?i)^(?:status|session status|show (?:me )?(?:the )?(?:session )?status|how are you doing)$`)
)

// parseCommand reads a direct order; ok is false for anything else.
func parseCommand(input string) (cmd command, ok bool) {
	s := strings.TrimSpace(courtesy.ReplaceAllString(input, ""))
	plain := strings.TrimRight(s, " .!?")
	if statusOrder.MatchString(plain) {
		return command{"session_status", map[string]any{}, "The status of this session:"}, true
	}
	if workersList.MatchString(plain) {
		return command{"subagents", map[string]any{"action": "list"}, "The workers of this session:"}, true
	}
	if m := cancelOrder.FindStringSubmatch(plain); m != nil {
		id := unquote(m[1])
		return command{"subagents", map[string]any{"action": "cancel", "id": id}, "Cancelling " + id + ":"}, true
	}
	if m := listOrder.FindStringSubmatch(plain); m != nil {
		dir := unquote(m[1] + m[2])
		if dir == "" {
			dir = "."
		}
		return command{"ls", map[string]any{"path": dir}, "The files in " + dir + ":"}, true
	}
	if m := readOrder.FindStringSubmatch(plain); m != nil {
		path := unquote(m[1])
		return command{"read", map[string]any{"path": path}, path + " says:"}, true
	}
	if m := findOrder.FindStringSubmatch(plain); m != nil {
		word := unquote(m[1])
		return command{"grep", map[string]any{"pattern": "(?i)" + regexp.QuoteMeta(word)}, "Where the files mention " + quote(word) + ":"}, true
	}
	// A command keeps its punctuation.
	if m := runOrder.FindStringSubmatch(s); m != nil {
		line := unquote(m[1])
		return command{"exec", map[string]any{"command": line}, "The command `" + clip(line, 80) + "` gave:"}, true
	}
	return command{}, false
}

// perform makes the command's call, or reports its result once it is there.
func (v view) perform(cmd command) answer {
	if why := v.missing(cmd.tool); why != "" {
		return say("I can't do that: %s.", why)
	}
	if len(v.rounds) == 0 {
		return answer{calls: []call{{cmd.tool, cmd.args}}}
	}
	res := v.rounds[len(v.rounds)-1][0].result
	body := strings.TrimSpace(res.Content)
	if res.IsError {
		return say("That did not work. The tool %s says: %s", cmd.tool, clipBlock(body, 2000))
	}
	if cmd.tool == "read" {
		body = joinLines(readLines(res.Content))
	}
	if body == "" {
		body = "(nothing)"
	}
	return say("%s\n\n%s", cmd.done, fence(clipBlock(body, 6000)))
}

// fence quotes text as a code block that the text itself can't close.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return fmt.Sprintf("%s\n%s\n%s", mark, text, mark)
}

// unquote drops the quotes or backticks around an argument.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range []string{"``", `""`, "''", "“”", "‘’", "«»"} {
		r := []rune(q)
		open, end := string(r[0]), string(r[1])
		if len(s) >= len(open)+len(end) && strings.HasPrefix(s, open) && strings.HasSuffix(s, end) {
			return strings.TrimSpace(s[len(open) : len(s)-len(end)])
		}
	}
	return s
}

func quote(s string) string { return "“" + s + "”" }

var numbered = regexp.MustCompile(`^ *(\d+)(?:\t|→)(.*)$`)

// line is one line of a file with its number; a number of 0 marks what the
// tool itself added.
type line struct {
	number int
	text   string
}

// readLines takes the numbers off what the read tool returned; if it returned
// none, the lines are counted.
func readLines(content string) []line {
	raw := strings.Split(strings.TrimRight(strings.ReplaceAll(content, "\r\n", "\n"), "\n"), "\n")
	marked := 0
	for _, r := range raw {
		if numbered.MatchString(r) {
			marked++
		}
	}
	lines := make([]line, len(raw))
	for i, r := range raw {
		lines[i] = line{i + 1, r}
		if 2*marked < len(raw) && !isNote(content) {
			continue
		}
		lines[i].number = 0
		if m := numbered.FindStringSubmatch(r); m != nil {
			lines[i] = line{atoi(m[1]), m[2]}
		}
	}
	return lines
}

// isNote tells a tool's remark, such as [empty file], from what it was asked
// for.
func isNote(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && !strings.Contains(s, "\n")
}

func joinLines(lines []line) string {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	return strings.Join(texts, "\n")
}

// atoi is 0 for what is no number that fits.
func atoi(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}
