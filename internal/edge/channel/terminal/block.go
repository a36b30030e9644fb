package terminal

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"goclaw"
)

// blockKind says how a block of the conversation is drawn.
type blockKind int

const (
	blockTitle    blockKind = iota
	blockNote               // a dim remark of the screen itself
	blockUser               // what a person wrote
	blockReply              // what the agent answered, Markdown
	blockStream             // the answer as it arrives
	blockThinking           // one line unless unfolded
	blockTool               // one line unless unfolded
	blockAnnounce           // what started a turn that no person did
	blockSystem             // the gateway's answer to a command
	blockWarning            // something is wrong that does not end the turn
	blockError
)

// block is one piece of the conversation. Its text comes from outside and is
// cleaned when it is drawn.
type block struct {
	kind   blockKind
	text   string
	live   bool // still growing, or a tool that is still running
	call   goclaw.ToolCall
	result *goclaw.ToolResult

	cached []string
	drawn  drawing
}

// drawing is all that decides how a given block looks.
type drawing struct {
	width    int
	method   ansi.Method
	expanded bool
}

// set replaces the text.
func (b *block) set(text string) { b.text, b.cached = text, nil }

// touch makes the block be drawn anew.
func (b *block) touch() { b.cached = nil }

// compact reports whether blocks of this kind stand without space between.
func (b *block) compact() bool {
	return b.kind == blockTool || b.kind == blockThinking || b.kind == blockNote || b.kind == blockWarning || b.kind == blockTitle
}

// rows returns the painted lines, none wider than d.width.
func (b *block) rows(md markdown, d drawing) []string {
	if b.cached != nil && b.drawn == d {
		return b.cached
	}
	out := []string{}
	for _, l := range b.draw(md, d) {
		out = append(out, l.fit(d.method, d.width).String())
	}
	b.cached, b.drawn = out, d
	return out
}

const margin = "  "

func (b *block) draw(md markdown, d drawing) []line {
	inner := max(1, d.width-len(margin))
	blank := span{text: margin}
	text := func(st style) []line {
		return wrap(d.method, inner, span{strings.Trim(clean(b.text), "\n"), st})
	}
	switch b.kind {
	case blockTitle:
		return []line{{{b.text, bold}, {" · /help shows commands and keys", dim}}}
	case blockUser:
		return indent(text(bold), span{"› ", cyan}, blank)
	case blockReply:
		return indent(md.render(b.text, inner), blank, blank)
	case blockStream:
		if strings.HasPrefix(goclaw.NoReply, strings.TrimSpace(b.text)) {
			return nil // perhaps the agent is about to say nothing
		}
		return indent(text(plain), blank, blank)
	case blockThinking:
		return b.drawThinking(d, inner)
	case blockTool:
		return b.drawTool(d, inner)
	case blockAnnounce:
		return indent(text(dim), span{"◂ ", dim}, blank)
	case blockSystem:
		bar := span{"┃ ", magenta}
		return indent(text(plain), bar, bar)
	case blockWarning:
		return indent(text(yellow), span{"! ", yellow}, blank)
	case blockError:
		return indent(text(red), span{"✗ ", red}, blank)
	}
	return indent(text(dim), blank, blank)
}

func (b *block) drawThinking(d drawing, inner int) []line {
	head := span{margin + "▸ ", dim}
	if d.expanded {
		body := wrap(d.method, max(1, inner-2), span{strings.TrimSpace(clean(b.text)), dim.and(italic)})
		return indent(body, span{margin + "▾ ", dim}, span{text: margin + "  "})
	}
	said, label := oneLine(b.text), "thought: "
	if b.live {
		said, label = oneLine(lastLine(b.text)), "thinking: "
	}
	return []line{{head, span{label + said, dim.and(italic)}}}
}

// maxUnfolded bounds the lines that an unfolded tool call shows of its result.
const maxUnfolded = 200

func (b *block) drawTool(d drawing, inner int) []line {
	title := callTitle(b.call)
	name, args, _ := strings.Cut(title, " ")
	head := line{{margin + "▸ ", dim}, {name, cyan}}
	if args != "" {
		head = append(head, span{" " + args, plain})
	}
	if !d.expanded {
		st := dim
		if b.result != nil && b.result.IsError {
			st = red
			head[0].style, head[1].style = red, red
		}
		summary := "  " + b.summary()
		room := d.width - min(d.method.StringWidth(summary), d.width/2)
		return []line{append(head.fit(d.method, room), span{summary, st})}
	}
	head[0].text = margin + "▾ "
	bar := span{margin + "  │ ", dim}
	body := chop(d.method, max(1, inner-4), span{pretty(b.call.Arguments), dim})
	if b.result != nil {
		st := plain
		if b.result.IsError {
			st = red
		}
		shown := chop(d.method, max(1, inner-4), span{strings.TrimRight(clean(b.result.Content), "\n"), st})
		if more := len(shown) - maxUnfolded; more > 0 {
			shown = append(shown[:maxUnfolded], line{{"… " + count(more, "more line"), dim}})
		}
		body = append(append(body, line{{"─", dim}}), shown...)
	}
	return append([]line{head}, indent(body, bar, bar)...)
}

// summary says in a few words how a tool call went.
func (b *block) summary() string {
	switch {
	case b.result == nil && b.live:
		return "…"
	case b.result == nil:
		return "no result"
	}
	text := strings.TrimSpace(clean(b.result.Content))
	lines := strings.Count(text, "\n") + 1
	switch {
	case text == "":
		return "done"
	case b.result.IsError, lines == 1:
		return oneLine(firstLine(text))
	}
	return count(lines, "line")
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// telling lists the arguments by which people know a tool call, best first.
var telling = [...]string{"label", "pattern", "query", "command", "path", "file", "url", "action", "name", "agent", "task"}

// callTitle is a tool call in one line: its name and its telling argument.
func callTitle(c goclaw.ToolCall) string {
	name := oneLine(c.Name)
	if name == "" {
		name = "tool"
	}
	var args map[string]any
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return strings.TrimSpace(name + " " + oneLine(c.Arguments))
	}
	for _, k := range slices.Concat(telling[:], slices.Sorted(maps.Keys(args))) {
		v, ok := args[k].(string)
		if v = oneLine(v); !ok || v == "" {
			continue
		}
		if k == "path" || k == "file" || k == "url" {
			return name + " " + v
		}
		return name + " " + strconv.Quote(v)
	}
	return name
}

// pretty shows arguments one a line; malformed ones as they came.
func pretty(raw string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &args) != nil {
		return clean(raw)
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(args)) {
		s := string(args[k])
		_ = json.Unmarshal(args[k], &s) // what is no text stays as it came
		lines = append(lines, clean(k+": "+s))
	}
	return strings.Join(lines, "\n")
}

// count is n things in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
