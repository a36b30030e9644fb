package typed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Finding is something that a worker found out.
type Finding struct {
	Claim      string  `json:"claim"`
	Evidence   string  `json:"evidence"`   // where it is seen: a file and line, an address, an output
	Confidence float64 `json:"confidence"` // 0 to 1
}

const (
	findingsKey   = "findings"
	findingsOpen  = "<findings>"
	findingsClose = "</findings>"
)

// span is a part of a text.
type span struct{ start, end int }

// block is a findings element: its place, and what stands between the tags.
type block struct {
	span
	raw string
}

// block returns the findings element that begins at i. Its list may hold the
// closing tag in a text; what is no list ends at the next closing tag.
func (s *scanner) block(i int) (block, bool) {
	if !strings.HasPrefix(s.text[i:], findingsOpen) || i > s.lastClose {
		return block{}, false
	}
	from := i + len(findingsOpen)
	at := s.blank(from)
	if end := s.value(at); end > 0 {
		if behind := s.blank(end); strings.HasPrefix(s.text[behind:], findingsClose) {
			return block{span{i, behind + len(findingsClose)}, s.text[at:end]}, true
		}
	}
	n := strings.Index(s.text[from:], findingsClose)
	if n < 0 {
		return block{}, false
	}
	return block{span{i, from + n + len(findingsClose)}, s.text[from : from+n]}, true
}

// blocks returns all findings elements of the text.
func (s *scanner) blocks() []block {
	var out []block
	for i := 0; ; {
		n := strings.Index(s.text[i:], findingsOpen)
		if n < 0 {
			return out
		}
		b, ok := s.block(i + n)
		if !ok {
			return out
		}
		out, i = append(out, b), b.end
	}
}

// findingsOf reads the last findings element among texts that stand outside of
// the answer. The texts are given back with it cut out.
func findingsOf(texts []string) (found []Finding, rest, problems []string) {
	for n, text := range slices.Backward(texts) {
		all := newScanner(text).blocks()
		if len(all) == 0 {
			continue
		}
		b := all[len(all)-1]
		found, problems = readFindings(b.raw)
		return found, slices.Concat(texts[:n], []string{text[:b.start], text[b.end:]}, texts[n+1:]), problems
	}
	return nil, texts, []string{"the findings are missing"}
}

// readFindings reads a list of findings.
func readFindings(raw string) ([]Finding, []string) {
	raw = strings.TrimSpace(raw)
	if inner, ok := strings.CutPrefix(raw, "```json"); ok {
		raw = strings.TrimSpace(strings.TrimSuffix(inner, "```"))
	}
	v, err := decode([]byte(raw))
	if err != nil {
		return nil, []string{fmt.Sprintf("the findings are no JSON list (%v)", err)}
	}
	return checkFindings(v)
}

func checkFindings(v any) ([]Finding, []string) {
	list, ok := v.([]any)
	if !ok {
		return nil, []string{"the findings are no JSON list"}
	}
	found := make([]Finding, 0, len(list))
	var problems []string
	for i, item := range list {
		f, what := checkFinding(item)
		if what != "" {
			problems = append(problems, fmt.Sprintf("at findings/%d: %s", i, what))
		}
		found = append(found, f)
	}
	if problems != nil {
		return nil, problems
	}
	return found, nil
}

func checkFinding(v any) (Finding, string) {
	fields, ok := v.(map[string]any)
	if !ok {
		return Finding{}, "want an object with claim, evidence and confidence"
	}
	var f Finding
	for name, to := range map[string]*string{"claim": &f.Claim, "evidence": &f.Evidence} {
		*to, _ = fields[name].(string)
	}
	switch {
	case strings.TrimSpace(f.Claim) == "":
		return f, "claim is no text, or empty"
	case strings.TrimSpace(f.Evidence) == "":
		return f, "evidence is no text, or empty"
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "claim" && name != "evidence" && name != "confidence" {
			return f, fmt.Sprintf("%q is not allowed; it has claim, evidence, confidence", name)
		}
	}
	if f.Confidence, ok = confidence(fields["confidence"]); !ok {
		return f, "confidence is none of low, medium, high, and no number from 0 to 1"
	}
	return f, ""
}

func confidence(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, v >= 0 && v <= 1
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "low":
			return 0.3, true
		case "medium":
			return 0.6, true
		case "high":
			return 0.9, true
		}
	}
	return 0, false
}
