package definition

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
)

// Next is a worker that follows, and the artifacts that it is given.
type Next struct {
	Agent     string // a definition's name
	Artifacts []string
	Line, Col int // of the whole text
}

const nextHint = "write NAME with artifacts [A, B], and `then NAME …` for what follows that"

var nextWith = regexp.MustCompile(`^(.*?) with artifacts? ?\[([^\[\]]*)\]$`)

// next reads `executor with artifacts [PLAN.md] then verifier`.
func (p *parser) next(f frontmatter.Field) []Next {
	text := p.text(f)
	if f.Value.Kind != frontmatter.String {
		return nil
	}
	var out []Next
	words := strings.Fields(text)
	for more := true; more; {
		piece := words
		i := slices.Index(words, "then")
		if more = i >= 0; more {
			piece, words = words[:i], words[i+1:]
		}
		n, ok := p.follower(strings.Join(piece, " "), f.Value)
		if !ok {
			return nil
		}
		out = append(out, n)
	}
	return out
}

func (p *parser) follower(text string, at frontmatter.Value) (Next, bool) {
	n := Next{Agent: text, Line: at.Line, Col: at.Col}
	fail := func(message string) (Next, bool) {
		p.at(LevelError, at, message, nextHint)
		return Next{}, false
	}
	if m := nextWith.FindStringSubmatch(text); m != nil {
		n.Agent = m[1]
		for name := range strings.SplitSeq(m[2], ",") {
			name = strings.TrimSpace(name)
			if !IsArtifactName(name) {
				return fail(fmt.Sprintf("next holds %q, which is no artifact's name", name))
			}
			if !slices.Contains(n.Artifacts, name) {
				n.Artifacts = append(n.Artifacts, name)
			}
		}
	}
	switch {
	case slug(n.Agent) == "":
		return fail("next names nobody")
	case strings.ContainsAny(n.Agent, "[],") || strings.Contains(n.Agent+" ", " with "):
		return fail(fmt.Sprintf("next can't be read at %q", n.Agent))
	}
	return n, true
}

// IsArtifactName reports whether an artifact can have the name: a relative path
// with slashes that leads nowhere else, or a pattern of such.
func IsArtifactName(name string) bool {
	_, err := path.Match(name, "")
	return err == nil && name != "" && name != "." && len(name) <= 200 && name == path.Clean(name) && !path.IsAbs(name) &&
		!strings.HasPrefix(name, "../") && name != ".." && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f })
}
