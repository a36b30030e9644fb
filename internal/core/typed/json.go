package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/definition"
	"goclaw/internal/core/schema"
)

// maxTries bounds how many values of one reply are held against the schema.
const maxTries = 50

// piece is a JSON value in a reply.
type piece struct {
	span
	fenced bool
}

// pieces returns the JSON values that may be the answer: the whole text if it
// is one, else all objects and lists that don't lie within others, and what
// fences hold; not those within findings, if they were asked for.
func (s *scanner) pieces(findings bool) []piece {
	from := len(s.text) - len(strings.TrimLeft(s.text, "\ufeff \t\r\n"))
	if end := s.value(from); end > 0 && strings.TrimSpace(s.text[end:]) == "" {
		return []piece{{span{from, end}, true}}
	} else if end == 0 && s.single(from) {
		s.torn[from] = true
	}
	lastFence := strings.LastIndex(s.text, fenceEnd)
	var out []piece
	for i := 0; ; {
		n := strings.IndexAny(s.text[i:], "<`{[")
		if n < 0 {
			return out
		}
		i += n
		at, fenced := i, false
		switch s.text[i] {
		case '<':
			i++
			if !findings {
				continue
			}
			if b, ok := s.block(i - 1); ok {
				i = b.end
			}
			continue
		case '`':
			if at, fenced = s.fence(i); !fenced {
				i++
				continue
			}
		}
		if end := s.value(at); end > 0 {
			out = append(out, piece{span{at, end}, fenced})
			i = end
			continue
		}
		i = max(i+1, at)
		// What stands in a broken value is a part of an answer, not the answer.
		switch {
		case fenced && i <= lastFence:
			i += strings.Index(s.text[i:], fenceEnd)
		case s.torn[at]:
			i = s.past(at)
		}
	}
}

// fenceEnd begins the line that closes a fence.
const fenceEnd = "\n```"

// fence returns where the content of a fence marked json at i begins.
func (s *scanner) fence(i int) (int, bool) {
	rest, ok := strings.CutPrefix(s.text[i:], "```")
	if !ok || len(rest) < 4 || !strings.EqualFold(rest[:4], "json") {
		return 0, false
	}
	rest = strings.TrimLeft(rest[4:], "c5") // jsonc, json5
	return s.blank(len(s.text) - len(rest)), true
}

// best puts the pieces in the order in which they are tried.
func best(found []piece) []piece {
	slices.Reverse(found)
	slices.SortStableFunc(found, func(a, b piece) int {
		switch {
		case a.fenced == b.fenced:
			return 0
		case a.fenced:
			return -1
		}
		return 1
	})
	return found[:min(len(found), maxTries)]
}

func parseJSON(o definition.Output, findings bool, reply string) (Answer, []string) {
	form, err := compiled(o.Schema)
	if err != nil {
		return Answer{}, []string{err.Error()}
	}
	s := newScanner(reply)
	found := best(s.pieces(findings))
	if len(found) == 0 {
		return Answer{}, []string{s.missing()}
	}
	var first []string
	for i, p := range found {
		v, problems := judge(form, reply[p.start:p.end], findings && Keyed(o.Schema))
		if len(problems) == 0 {
			return v.answer(reply, p, findings)
		}
		if i == 0 {
			first = problems
		}
	}
	return Answer{}, first
}

func compiled(form json.RawMessage) (*schema.Schema, error) {
	if len(form) == 0 {
		return nil, nil
	}
	return schema.Compile(form)
}

// missing words that there is no JSON in the text, and what is wrong with the
// first that looks like it.
func (s *scanner) missing() string {
	at := strings.IndexAny(s.text, "{[")
	if at < 0 {
		return "there is no JSON in the reply"
	}
	for torn := range s.torn {
		if !s.torn[at] || torn < at {
			at = torn
		}
	}
	what := "there is no complete JSON value in the reply: it is cut off, or not valid"
	var v any
	d := json.NewDecoder(strings.NewReader(s.text[at:]))
	err := d.Decode(&v)
	var wrong *json.SyntaxError
	if errors.As(err, &wrong) && wrong.Offset > 0 {
		line := 1 + strings.Count(s.text[:min(len(s.text), at+int(wrong.Offset)-1)], "\n")
		what += fmt.Sprintf(" (line %d: %v)", line, err)
	}
	return what
}

// verdict is a value that fits the schema.
type verdict struct {
	raw    json.RawMessage // canonical, without findings
	taken  json.RawMessage // the findings that were in it
	inside bool            // there were some
}

// judge holds a value against the schema, without its key findings if that is
// to be taken out.
func judge(form *schema.Schema, raw string, take bool) (verdict, []string) {
	if depth([]byte(raw)) > maxDepth {
		return verdict{}, []string{fmt.Sprintf("the JSON is nested deeper than %d levels", maxDepth)}
	}
	value, err := decodeExact([]byte(raw))
	if err != nil {
		return verdict{}, []string{fmt.Sprintf("the JSON is not valid (%v)", err)}
	}
	var v verdict
	if fields, ok := value.(map[string]any); ok && take {
		if v.taken, err = canonical(fields[findingsKey]); err != nil {
			return verdict{}, []string{fmt.Sprintf("the JSON is not valid (%v)", err)}
		}
		_, v.inside = fields[findingsKey]
		delete(fields, findingsKey)
	}
	if v.raw, err = canonical(value); err != nil {
		return verdict{}, []string{fmt.Sprintf("the JSON is not valid (%v)", err)}
	}
	if form == nil {
		return v, nil
	}
	plain, err := decode(v.raw)
	if err != nil {
		return verdict{}, []string{fmt.Sprintf("the JSON is not valid (%v)", err)}
	}
	return v, lines(form.Problems(plain))
}

// answer puts a value and what stands around it together.
func (v verdict) answer(reply string, p piece, findings bool) (Answer, []string) {
	a := Answer{Result: string(v.raw), JSON: v.raw}
	outside := []string{reply[:p.start], reply[p.end:]}
	var problems []string
	switch {
	case !findings:
	case v.inside:
		a.Findings, problems = readFindings(string(v.taken))
	default:
		a.Findings, outside, problems = findingsOf(outside)
	}
	a.Dropped = weigh(outside)
	return a, problems
}

// Keyed reports whether findings may stand under the key "findings" of an
// answer in JSON of that schema: it describes an object, and leaves that name
// to us.
func Keyed(form json.RawMessage) bool {
	if len(form) == 0 {
		return true
	}
	var s struct {
		Type              string                     `json:"type"`
		Properties        map[string]json.RawMessage `json:"properties"`
		Required          []string                   `json:"required"`
		PatternProperties json.RawMessage            `json:"patternProperties"`
		Ref               json.RawMessage            `json:"$ref"`
		AllOf             json.RawMessage            `json:"allOf"`
		AnyOf             json.RawMessage            `json:"anyOf"`
		OneOf             json.RawMessage            `json:"oneOf"`
	}
	if json.Unmarshal(form, &s) != nil || s.Type != "object" {
		return false
	}
	_, taken := s.Properties[findingsKey]
	return !taken && !slices.Contains(s.Required, findingsKey) &&
		len(bytes.Join([][]byte{s.PatternProperties, s.Ref, s.AllOf, s.AnyOf, s.OneOf}, nil)) == 0
}
