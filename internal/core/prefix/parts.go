package prefix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// Kind orders parts as they are cached.
type Kind int

// The kinds of part, in the order in which they count.
const (
	Tool Kind = iota
	Section
	Message
	kinds
)

// Part is a piece of a request. Tools and messages are JSON, sections plain
// text.
type Part struct {
	Kind Kind
	Name string // "tool exec", "section file:SOUL.md", "message 3 (user)"
	Text string
}

// Request is a body taken apart.
type Request struct {
	Parts  []Part            // in order of their kinds
	Fields map[string]string // the body's other fields, as JSON
}

// Parts takes body apart. sections are what its system prompt was rendered
// from; what precedes the text of one, such as its title, belongs to it.
func Parts(body []byte, sections []goclaw.Section) (Request, error) {
	fields, err := members(body)
	if err != nil {
		return Request{}, fmt.Errorf("take request apart: %w", err)
	}
	r := Request{Fields: map[string]string{}}
	var system string
	var messages []Part
	for _, f := range fields {
		switch f.key {
		case "tools":
			var tools []Part
			if tools, err = toolParts(f.value); err == nil {
				r.Parts = append(r.Parts, tools...)
			}
		case "system":
			system, err = contentText(f.value)
		case "messages":
			var first string
			first, messages, err = messageParts(f.value)
			if first != "" {
				system = first
			}
		default:
			r.Fields[f.key] = string(f.value)
		}
		if err != nil {
			return Request{}, fmt.Errorf("take request apart: %s: %w", f.key, err)
		}
	}
	r.Parts = append(r.Parts, sectionParts(system, sections)...)
	r.Parts = append(r.Parts, messages...)
	return r, nil
}

func toolParts(raw json.RawMessage) ([]Part, error) {
	tools, err := elements(raw)
	if err != nil {
		return nil, err
	}
	parts := make([]Part, len(tools))
	for i, tool := range tools {
		var named struct {
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := json.Unmarshal(tool, &named); err != nil {
			return nil, err
		}
		text, err := withoutBreakpoint(tool)
		if err != nil {
			return nil, err
		}
		parts[i] = Part{Tool, "tool " + named.Name + named.Function.Name, text}
	}
	return parts, nil
}

// sectionParts splits the system prompt where the sections' texts end.
func sectionParts(system string, sections []goclaw.Section) []Part {
	var parts []Part
	rest := system
	for _, s := range sections {
		i := strings.Index(rest, s.Text)
		if s.Text == "" || i < 0 {
			continue
		}
		end := i + len(s.Text)
		parts = append(parts, Part{Section, "section " + s.ID, rest[:end]})
		rest = rest[end:]
	}
	if rest != "" {
		parts = append(parts, Part{Section, "system prompt", rest})
	}
	return parts
}

// messageParts returns the text of the system messages that come first, and
// the other messages.
func messageParts(raw json.RawMessage) (system string, parts []Part, err error) {
	all, err := elements(raw)
	if err != nil {
		return "", nil, err
	}
	var texts []string
	for _, m := range all {
		fields, err := members(m)
		if err != nil {
			return "", nil, err
		}
		var role string
		for i, f := range fields {
			switch f.key {
			case "role":
				err = json.Unmarshal(f.value, &role)
			case "content":
				fields[i].value, err = blocksWithoutBreakpoint(f.value)
			}
			if err != nil {
				return "", nil, err
			}
		}
		if len(parts) == 0 && (role == "system" || role == "developer") {
			text, err := contentText(value(fields, "content"))
			if err != nil {
				return "", nil, err
			}
			texts = append(texts, text)
			continue
		}
		parts = append(parts, Part{Message, fmt.Sprintf("message %d (%s)", len(parts)+1, role), object(fields)})
	}
	return strings.Join(texts, "\n\n"), parts, nil
}

// contentText reads content that is a text, a list of blocks, or nothing.
func contentText(raw json.RawMessage) (string, error) {
	if isText(raw) {
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if len(raw) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", err
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n\n"), nil
}

// blocksWithoutBreakpoint removes the breakpoints of a message's blocks.
func blocksWithoutBreakpoint(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return raw, nil
	}
	blocks, err := elements(raw)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		if texts[i], err = withoutBreakpoint(b); err != nil {
			return nil, err
		}
	}
	return json.RawMessage("[" + strings.Join(texts, ",") + "]"), nil
}

func withoutBreakpoint(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return string(raw), nil
	}
	fields, err := members(raw)
	if err != nil {
		return "", err
	}
	return object(slices.DeleteFunc(fields, func(m member) bool { return m.key == "cache_control" })), nil
}

// member is one of a JSON object, its value as it stands there.
type member struct {
	key   string
	value json.RawMessage
}

// members reads an object in its own order.
func members(raw []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil {
		return nil, err
	} else if begin != json.Delim('{') {
		return nil, fmt.Errorf("want a JSON object, not %.40q", raw)
	}
	var all []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.key, _ = key.(string) // an object's keys are texts
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err
}

func object(fields []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(f.key) // a text always encodes
		b.Write(key)
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteByte('}')
	return b.String()
}

func value(fields []member, key string) json.RawMessage {
	for _, f := range fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// elements reads a list; nothing and null are empty ones.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	var all []json.RawMessage
	if len(raw) == 0 {
		return nil, nil
	}
	err := json.Unmarshal(raw, &all)
	return all, err
}

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }
