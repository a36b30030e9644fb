package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Change is a new value for a key.
type Change struct {
	Key   string
	Value json.RawMessage // nil takes the key out of the file
}

// Value reads a value as people write it on a command line: JSON, or the bare
// text where a string belongs. A secret is refused: command lines are seen by
// others.
func Value(key, text string) (json.RawMessage, error) {
	at, err := find(key)
	if err != nil {
		return nil, err
	}
	t := at.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Sealed]() && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, fmt.Errorf(`%s is a secret, and a command line is no place for one: goclaw secrets set NAME keeps it, then set this to {"secret": "NAME"}`, key)
	}
	if t.Kind() == reflect.String && !strings.HasPrefix(text, `"`) {
		return json.RawMessage(hujson.String(text)), nil
	}
	v, err := hujson.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: the value must be JSON, such as 3, true, [\"a\", \"b\"] or {\"key\": 1}", key)
	}
	v.Standardize()
	v.Minimize()
	return json.RawMessage(v.Pack()), nil
}

// Edit changes keys in the text of a file, whose path is for messages and for
// what is relative to it. Comments and layout stay as they are. No text is a
// file that begins now. The outcome is checked as Load checks it; what is wrong
// comes as an error, and the text that is given stays what it was.
func Edit(path string, text []byte, changes ...Change) ([]byte, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("edit config: %w", err)
	}
	if len(text) > 0 {
		if _, err := parse(path, filepath.Dir(abs), text); err != nil {
			return nil, fmt.Errorf("%w\nmend the file first: nothing was changed", err)
		}
	}
	bom := []byte("\uFEFF")
	bare := bytes.TrimPrefix(text, bom)
	in := styleOf(string(bare))
	now := string(bare)
	if len(bare) == 0 {
		now = "{\n}\n"
	}
	for _, c := range changes {
		if now, err = in.edit(now, c); err != nil {
			return nil, err
		}
	}
	out := []byte(now)
	if len(bare) < len(text) {
		out = append(bom, out...)
	}
	var wrong Problems
	if _, err := parse(path, filepath.Dir(abs), out); errors.As(err, &wrong) {
		said := make([]string, len(wrong)) // its lines are not those of the person's file
		for i, p := range wrong {
			said[i] = p.What + "; " + p.Hint
		}
		return nil, errors.New(strings.Join(said, "\n"))
	}
	return out, nil
}

func (in style) edit(text string, c Change) (string, error) {
	at, err := find(c.Key)
	if err != nil {
		return "", err
	}
	root, err := hujson.Parse([]byte(text))
	if err != nil {
		return "", fmt.Errorf("edit config: %w", err)
	}
	if c.Value == nil {
		return remove(root, text, at.steps)
	}
	inner, left := root, at.steps
	for len(left) > 0 {
		next, ok := child(inner, left[0])
		if !ok {
			break
		}
		inner, left = next, left[1:]
	}
	if len(left) == 0 {
		depth := indentOf(text, inner.StartOffset)
		return text[:inner.StartOffset] + in.layout(c.Value, depth) + text[inner.EndOffset:], nil
	}
	value := c.Value
	for _, name := range slices.Backward(left[1:]) {
		if _, err := strconv.Atoi(name); err == nil {
			return "", fmt.Errorf("%s: the list does not exist yet; set it as a whole", c.Key)
		}
		value = json.RawMessage(fmt.Sprintf("{%s: %s}", string(hujson.String(name)), string(value)))
	}
	return in.add(text, inner, left[0], value, c.Key)
}

// child is the member or element of that name.
func child(v hujson.Value, name string) (hujson.Value, bool) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		for _, m := range t.Members {
			if nameOf(m) == name {
				return m.Value, true
			}
		}
	case *hujson.Array:
		if n, err := strconv.Atoi(name); err == nil && n < len(t.Elements) {
			return t.Elements[n], true
		}
	}
	return hujson.Value{}, false
}

// remove takes a member or element out, with the comments that belong to it.
func remove(root hujson.Value, text string, steps []string) (string, error) {
	pointer := ""
	for _, s := range steps {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
	}
	if root.Find(pointer) == nil || pointer == "" {
		return text, nil
	}
	patch, err := json.Marshal([]map[string]string{{"op": "remove", "path": pointer}})
	if err == nil {
		err = root.Patch(patch)
	}
	if err != nil {
		return "", fmt.Errorf("edit config: %w", err)
	}
	return string(root.Pack()), nil
}

// style is how a file is laid out.
type style struct{ line, unit string }

func styleOf(text string) style {
	s := style{"\n", "  "}
	if strings.Contains(text, "\r\n") {
		s.line = "\r\n"
	}
	if strings.Contains(text, "\n\t") {
		s.unit = "\t"
	}
	return s
}

// add puts a member at the end of an object, or an element at that of a list,
// in the layout that is there.
func (in style) add(text string, to hujson.Value, name string, value json.RawMessage, key string) (string, error) {
	last, count, closing := -1, 0, to.EndOffset-1
	named := ""
	switch t := to.Value.(type) {
	case *hujson.Object:
		if count = len(t.Members); count > 0 {
			last = t.Members[count-1].Value.EndOffset
		}
		named = string(hujson.String(name)) + ": "
	case *hujson.Array:
		if count = len(t.Elements); count > 0 {
			last = t.Elements[count-1].EndOffset
		}
		if n, err := strconv.Atoi(name); err != nil || n > count {
			return "", fmt.Errorf("%s: the list has %d elements; %d is the next", key, count, count)
		}
	default:
		return "", fmt.Errorf("edit config: %s stands in what is no object", key)
	}
	outer := indentOf(text, to.StartOffset)
	if last < 0 {
		inside := strings.TrimRight(text[to.StartOffset+1:closing], " \t\r\n")
		member := in.line + outer + in.unit + named + in.layout(value, outer+in.unit) + in.line + outer
		return text[:to.StartOffset+1] + inside + member + text[closing:], nil
	}
	if !strings.Contains(text[to.StartOffset:closing], "\n") { // all in one line
		return text[:last] + ", " + named + string(spaced(value)) + text[last:], nil
	}
	comma, line := afterLast(text[:closing], last)
	depth := indentOf(text, to.StartOffset) + in.unit
	if at, ok := firstOf(to); ok && strings.TrimSpace(text[lineStart(text, at):at]) == "" {
		depth = text[lineStart(text, at):at]
	}
	member := in.line + depth + named + in.layout(value, depth)
	if line == closing { // the bracket stands in the last member's line
		member += in.line + outer
	}
	if comma {
		return text[:line] + member + "," + text[line:], nil
	}
	return text[:last] + "," + text[last:line] + member + text[line:], nil
}

// firstOf is where the first member or element begins.
func firstOf(v hujson.Value) (int, bool) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		return t.Members[0].Name.StartOffset, true
	case *hujson.Array:
		return t.Elements[0].StartOffset, true
	}
	return 0, false
}

// afterLast looks behind the last value for a comma, and for where a new line
// may begin: behind the comments that stand in its line.
func afterLast(text string, at int) (comma bool, line int) {
	line = -1
	for at < len(text) {
		switch rest := text[at:]; {
		case rest[0] == ',':
			comma, line = true, -1
			at++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			at += end
		case strings.HasPrefix(rest, "/*"):
			at += strings.Index(rest, "*/") + 2
		case rest[0] == '\n' && line < 0:
			line = at
			if line > 0 && text[line-1] == '\r' {
				line--
			}
			at++
		default:
			at++
		}
	}
	if line < 0 {
		line = len(text)
	}
	return comma, line
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// indentOf is the white space at the beginning of the line of at.
func indentOf(text string, at int) string {
	line := text[lineStart(text, at):at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// layout writes a value: short ones in a line, others as an editor would.
func (in style) layout(value json.RawMessage, indent string) string {
	const short = 60
	one := spaced(value)
	if len(one) <= short && bytes.Count(one, []byte("{")) < 2 {
		return string(one)
	}
	v, err := hujson.Parse(value)
	object, ok := v.Value.(*hujson.Object)
	if err != nil || !ok {
		return string(one)
	}
	var b strings.Builder
	b.WriteString("{")
	for i, m := range object.Members {
		if i > 0 {
			b.WriteString(",")
		}
		inner := json.RawMessage(bytes.TrimSpace(m.Value.Pack()))
		b.WriteString(in.line + indent + in.unit + string(bytes.TrimSpace(m.Name.Pack())) + ": " + in.layout(inner, indent+in.unit))
	}
	return b.String() + in.line + indent + "}"
}

// spaced puts a space behind each comma and colon of JSON.
func spaced(value json.RawMessage) []byte {
	v, err := hujson.Parse(value)
	if err != nil {
		return value
	}
	v.Minimize()
	for at := range v.All() {
		switch t := at.Value.(type) {
		case *hujson.Object:
			for i := range t.Members {
				t.Members[i].Value.BeforeExtra = hujson.Extra(" ")
				if i > 0 {
					t.Members[i].Name.BeforeExtra = hujson.Extra(" ")
				}
			}
		case *hujson.Array:
			for i := range t.Elements {
				if i > 0 {
					t.Elements[i].BeforeExtra = hujson.Extra(" ")
				}
			}
		}
	}
	return v.Pack()
}
