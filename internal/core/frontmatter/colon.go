package frontmatter

import (
	"regexp"
	"slices"
	"strings"
)

// plainField is a top-level `key: value` with an unquoted value: one that begins
// with none of YAML's indicators.
var plainField = regexp.MustCompile("^([A-Za-z_][A-Za-z0-9_-]*:[ \t]+)([^\\s\"'\\[\\]{}|>&*!%@`#?,-].*?|[-?][^\\s].*?)[ \t]*$")

// recoverColons quotes the values of top-level lines that no YAML reader can
// take as they stand, because they hold a colon and a space or end in a colon.
func recoverColons(h head) (string, []Problem) {
	var warnings []Problem
	lines := strings.Split(h.text, "\n")
	for i, line := range lines {
		m := plainField.FindStringSubmatch(line)
		if m == nil || !strings.Contains(m[2], ": ") && !strings.Contains(m[2], ":\t") && !strings.HasSuffix(m[2], ":") {
			continue
		}
		lines[i] = m[1] + "'" + strings.ReplaceAll(m[2], "'", "''") + "'"
		warnings = append(warnings, Problem{
			h.line + i, len(m[1]) + 1,
			"the value holds a colon and is not quoted; it was read as one text to the end of the line",
			"put the value in quotes",
		})
	}
	return strings.Join(lines, "\n"), warnings
}

// spansLines says what remains wrong after the recovery: if it stands in the
// further lines of a value that was quoted, that value is the cause.
func spansLines(h head, quoted []Problem, rest Problem) Problem {
	lines := strings.Split(h.text, "\n")
	for _, q := range quoted {
		if rest.Line <= q.Line || rest.Line-h.line >= len(lines) {
			continue
		}
		further := lines[q.Line-h.line+1 : rest.Line-h.line+1]
		if !slices.ContainsFunc(further, func(l string) bool { return l != "" && !strings.ContainsAny(l[:1], " \t") }) {
			return Problem{
				q.Line, q.Col, "the value holds a colon, is not quoted and goes on in the next lines",
				"write the key with a bar (`key: |`) and the whole text indented below it",
			}
		}
	}
	return rest
}
