package turn

import (
	"regexp"
	"slices"
	"strings"

	"goclaw"
)

// Reply is what an agent said, apart from its reply tag.
type Reply struct {
	Text    string
	To      string // the channel's id of the message that it answers
	Current bool   // it answers the message that the turn came from
}

const (
	maxTag  = 256 // bytes; what is longer is text
	tagWord = "reply_to_current"
)

var replyTag = regexp.MustCompile(`(?i)^\s*\[\[\s*(?:(reply_to_current)|reply_to\s*:([^\]\n]+))\s*\]\]`)

// ParseReply takes the reply tags off the beginning of a message: [[reply_to_current]]
// or [[reply_to:ID]], in any case, with space inside the brackets. The first one
// counts. Anything else, such as a tag further on, is text.
func ParseReply(text string) Reply {
	r, rest, tagged := Reply{Text: text}, text, false
	for {
		found := replyTag.FindStringSubmatch(rest)
		if found == nil || len(strings.TrimSpace(found[0])) > maxTag || found[1] == "" && strings.TrimSpace(found[2]) == "" {
			break
		}
		if !tagged {
			r.Current, r.To = found[1] != "", strings.TrimSpace(found[2])
		}
		rest, tagged = rest[len(found[0]):], true
	}
	if tagged {
		r.Text = strings.TrimLeft(rest, " \t\r\n")
	}
	return r
}

// Tag renders the tag with the id that is meant: current is that of the message
// which the turn came from. It is "" if no message is.
func (r Reply) Tag(current string) string {
	id := r.To
	if r.Current {
		id = strings.TrimSpace(current)
	}
	tag := "[[reply_to:" + id + "]]"
	if id == "" || len(tag) > maxTag || strings.ContainsAny(id, "]\n") {
		return ""
	}
	return tag
}

// Untagged returns an agent's message as people see it: without reply tags.
func Untagged(m goclaw.Message) goclaw.Message {
	for i, p := range m.Parts {
		if p.Kind != goclaw.PartText || strings.TrimSpace(p.Text) == "" {
			continue
		}
		if r := ParseReply(p.Text); r.Text != p.Text {
			m.Parts = slices.Clone(m.Parts)
			m.Parts[i].Text = r.Text
		}
		break
	}
	return m
}

// Untagger takes reply tags off a text that comes in pieces. The zero value is
// ready for a new text.
type Untagger struct {
	held string
	past bool // the beginning is over
}

// Add returns what can be shown of the text so far and was not shown yet: at
// the beginning nothing, while that may be a tag.
func (u *Untagger) Add(piece string) string {
	if u.past {
		return piece
	}
	u.held += piece
	r := ParseReply(u.held)
	if mayBeTag(strings.TrimLeft(r.Text, " \t\r\n")) {
		return ""
	}
	u.past, u.held = true, ""
	return r.Text
}

// Rest returns what is still held back of a text that has ended.
func (u *Untagger) Rest() string {
	text := ParseReply(u.held).Text
	u.past, u.held = true, ""
	return text
}

// mayBeTag reports whether s may become a tag when more of it has come.
func mayBeTag(s string) bool {
	if len(s) > maxTag || strings.Contains(s, "]]") {
		return false
	}
	inner, open := strings.CutPrefix(s, "[[")
	if !open {
		return strings.HasPrefix("[[", s)
	}
	inner = strings.ToLower(strings.TrimLeft(inner, " \t\r\n"))
	return strings.HasPrefix(tagWord, inner) || strings.HasPrefix(inner, "reply_to")
}
