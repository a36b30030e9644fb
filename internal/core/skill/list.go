package skill

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
	"goclaw/internal/core/prompt"
)

// Limits bound the list in a prompt.
type Limits struct {
	Count int // skills; 0: any number
	Chars int // characters of the whole block; 0: any number
}

// The configuration keys of the limits, for the reasons in Omitted.
const (
	countKey = "skills.limits.maxSkillsInPrompt"
	charsKey = "skills.limits.maxSkillsPromptChars"
)

const (
	openTag  = "<available_skills>\n"
	closeTag = "</available_skills>"
)

// steps are the ways to shorten descriptions, the gentlest first.
var steps = [...]struct {
	does  string
	apply func(string) string
}{
	{"", func(s string) string { return s }},
	{"cut to their first sentences", sentence},
	{"cut to 160 characters", func(s string) string { return clip(sentence(s), 160) }},
	{"cut to 80 characters", func(s string) string { return clip(sentence(s), 80) }},
}

// List words the chosen skills for a prompt, sorted by name. It first shortens
// descriptions to stay within the limits, then leaves out skills: those of
// farther scopes first, of one scope the last by name.
func List(choices []Choice, l Limits) prompt.SkillList {
	var out prompt.SkillList
	var in []Choice
	for _, c := range choices {
		switch {
		case c.In && c.File.Hidden:
			out.Omitted = append(out.Omitted, goclaw.Omission{Source: c.Path, Why: "disable-model-invocation is set: only people may ask for it"})
		case c.In:
			in = append(in, c)
		case c.OverriddenBy == "":
			out.Omitted = append(out.Omitted, goclaw.Omission{Source: c.Path, Why: c.Why})
		}
	}
	if len(in) == 0 {
		return out
	}
	slices.SortStableFunc(in, func(a, b Choice) int {
		if a.rank != b.rank {
			return b.rank - a.rank
		}
		return strings.Compare(a.Name, b.Name)
	})
	leave := func(from int, why string) {
		for _, c := range in[from:] {
			out.Omitted = append(out.Omitted, goclaw.Omission{Source: c.Path, Why: why})
		}
		in = in[:from]
	}
	if l.Count > 0 && len(in) > l.Count {
		leave(l.Count, fmt.Sprintf("%s is %d, and %d skills could be listed", countKey, l.Count, len(in)))
	}
	lines, step := shorten(in, l.Chars)
	if fit := fitting(lines, l.Chars); fit < len(in) {
		leave(fit, fmt.Sprintf("no room: %s is %d", charsKey, l.Chars))
	}
	if does := steps[step].does; does != "" && len(in) > 0 {
		out.Omitted = append(out.Omitted, goclaw.Omission{
			Source: fmt.Sprintf("descriptions of %d skills", len(in)), Why: fmt.Sprintf("%s: %s is %d", does, charsKey, l.Chars),
		})
	}
	if len(in) == 0 {
		return out
	}
	order := make([]int, len(in))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(in[a].Name, in[b].Name) })
	var b strings.Builder
	b.WriteString(openTag)
	for _, i := range order {
		b.WriteString(lines[i])
		out.Listed = append(out.Listed, in[i].Skill)
	}
	b.WriteString(closeTag)
	out.Text = b.String()
	return out
}

// shorten words the skills by the gentlest step that fits, or by the last one.
func shorten(in []Choice, most int) (lines []string, step int) {
	for step = range steps {
		lines = lines[:0]
		for _, c := range in {
			lines = append(lines, line(c.Skill, steps[step].apply(c.Description)))
		}
		if fitting(lines, most) == len(lines) {
			return lines, step
		}
	}
	return lines, step
}

// fitting is how many of the lines fit.
func fitting(lines []string, most int) int {
	if most <= 0 {
		return len(lines)
	}
	left := most - len(openTag) - len(closeTag)
	for i, l := range lines {
		if left -= utf8.RuneCountInString(l); left < 0 {
			return i
		}
	}
	return len(lines)
}

func line(s goclaw.Skill, description string) string {
	return "<skill><name>" + escape.Replace(s.Name) + "</name><description>" + escape.Replace(description) +
		"</description><location>" + escape.Replace(s.Location) + "</location></skill>\n"
}

// escape keeps text from ending its tag. Quotes may stand as they are.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// sentence is the first sentence of a text in one line.
func sentence(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] != '.' && s[i] != '!' && s[i] != '?' || i+1 < len(s) && s[i+1] != ' ' {
			continue
		}
		if i+2 < len(s) && s[i+2] >= 'a' && s[i+2] <= 'z' {
			continue // an abbreviation, such as e.g. this one
		}
		return s[:i+1]
	}
	return s
}
