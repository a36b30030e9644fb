package frontmatter

import (
	"fmt"
	"strings"
)

// ParseYAML reads a file that is one YAML map from its first line to its last.
// It returns its fields in the file's order, or what is wrong with it. Nothing
// is recovered: such files are written for this program.
func ParseYAML(data []byte) ([]Field, []Problem) {
	if problem := unreadable(data); problem != nil {
		if strings.HasPrefix(problem.Message, "the file is empty") {
			problem.Hint = "write one `key: value` per line"
		}
		return nil, []Problem{*problem}
	}
	if len(data) > MaxHead {
		return nil, []Problem{{1, 1, fmt.Sprintf("the file has %d bytes; %d are allowed", len(data), MaxHead), "move long text into files that it refers to"}}
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	return parseYAML(text, 1)
}
