package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/core/frontmatter"
)

// The bounds of agentskills.io, in characters.
const (
	MaxName        = 64
	MaxDescription = 1024
)

// Severity is how bad a problem is.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"   // the file is rejected
	Warning Severity = "warning" // it is used, but not quite as it stands
	Notice  Severity = "notice"  // something in it has no effect here
)

// Problem is something wrong in a file, for its person. Line and Col begin at
// 1; both are 0 if it is about the file as a whole.
type Problem struct {
	Severity Severity `json:"severity"`
	Line     int      `json:"line"`
	Col      int      `json:"col"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint"` // what to do
}

// In is the problem with its file, in one line.
func (p Problem) In(path string) string {
	if p.Line > 0 {
		path = fmt.Sprintf("%s:%d:%d", path, p.Line, p.Col)
	}
	if p.Hint == "" {
		return path + ": " + p.Message
	}
	return path + ": " + p.Message + "; " + p.Hint
}

// File is what a SKILL.md says.
type File struct {
	Name          string
	Description   string // in one line
	License       string
	Compatibility string
	Metadata      map[string]any
	AllowedTools  []string // as they stand; they have no effect
	Hidden        bool     // disable-model-invocation: only people may ask for it
	Needs         Needs
	Body          string
}

// Parse reads a SKILL.md that lies in the folder dir (a name, no path). If one
// of the problems is an Error, the file can't be used, and of File only what
// could be read is set.
func Parse(dir string, data []byte) (File, []Problem) {
	doc, bad := frontmatter.Parse(data)
	r := &reader{}
	for _, p := range doc.Warnings {
		r.add(Warning, p.Line, p.Col, p.Message, p.Hint)
	}
	for _, p := range bad {
		r.add(Error, p.Line, p.Col, p.Message, p.Hint)
	}
	if len(bad) > 0 {
		return File{Name: slug(dir), Body: doc.Body}, r.problems
	}
	r.file.Body = doc.Body
	r.fields(doc.Fields)
	r.name(doc, dir)
	r.description(doc)
	if strings.TrimSpace(doc.Body) == "" {
		r.add(Warning, max(doc.BodyLine, 1), 1, "the skill has no instructions", "write below the closing --- what is to be done")
	}
	return r.file, r.problems
}

// reader collects what a file says.
type reader struct {
	file     File
	unknown  []string
	problems []Problem
}

func (r *reader) add(s Severity, line, col int, message, hint string) {
	r.problems = append(r.problems, Problem{s, line, col, message, hint})
}

func (r *reader) at(s Severity, v frontmatter.Value, message, hint string) {
	r.add(s, v.Line, v.Col, message, hint)
}

// known are the keys that mean something here.
var known = [...]string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools",
	"requires", "disable-model-invocation", "user-invocable",
}

// fields reads all keys but name and description.
func (r *reader) fields(fields []frontmatter.Field) {
	var first frontmatter.Field
	for _, f := range fields {
		switch f.Key {
		case "name", "description", "user-invocable":
		case "license":
			r.file.License = r.text(f)
		case "compatibility":
			r.file.Compatibility = r.text(f)
		case "metadata":
			r.metadata(f)
		case "requires":
			r.requires(f.Value, "requires")
		case "allowed-tools":
			if r.file.AllowedTools = r.list(f.Value, f.Key); len(r.file.AllowedTools) > 0 {
				r.add(Notice, f.Line, f.Col, "allowed-tools has no effect: a skill neither widens nor narrows what its reader may use", "")
			}
		case "disable-model-invocation":
			if f.Value.Kind != frontmatter.Bool {
				r.at(Warning, f.Value, "disable-model-invocation must be true or false; it was ignored", "write true or false")
			}
			r.file.Hidden = f.Value.Bool
		default:
			if near := nearest(f.Key); near != "" {
				r.add(Warning, f.Line, f.Col, fmt.Sprintf("unknown key %q was ignored", f.Key), "did you mean "+near+"?")
				continue
			}
			if r.unknown = append(r.unknown, f.Key); len(r.unknown) == 1 {
				first = f
			}
		}
	}
	if len(r.unknown) > 0 {
		r.add(Notice, first.Line, first.Col, "keys that mean nothing here were ignored: "+strings.Join(r.unknown, ", "), "")
	}
}

// nearest is the known key that one edit leads to; "" if there is none.
func nearest(key string) string {
	key = strings.ReplaceAll(strings.ToLower(key), "_", "-")
	for _, k := range known {
		if oneEdit(key, k) {
			return k
		}
	}
	return ""
}

// oneEdit reports whether a and b are equal but for one letter that was
// changed, added, left out, or swapped with the next.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return len(b)-len(a) == 1 && a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

func (r *reader) name(doc frontmatter.Document, dir string) {
	f, ok := doc.Field("name")
	given, isText := scalar(f.Value)
	given = strings.TrimSpace(given)
	line, col := f.Value.Line, f.Value.Col
	folder := slug(dir)
	switch {
	case !ok || given == "" && (isText || f.Value.Kind == frontmatter.Null):
		line, col = max(f.Line, 1), max(f.Col, 1)
		if r.file.Name = folder; folder != "" {
			r.add(Warning, line, col, fmt.Sprintf("the name is missing; the folder's is used: %s", folder), "add `name: "+folder+"`")
		}
	case !isText:
		if r.file.Name = folder; folder != "" {
			r.add(Warning, line, col, fmt.Sprintf("the name must be a text, not %s; the folder's is used: %s", f.Value.Kind, folder), "write `name: "+folder+"`")
		}
	case !IsName(given):
		if r.file.Name = slug(given); r.file.Name == "" {
			r.file.Name = folder
		}
		if r.file.Name != "" {
			r.add(Warning, line, col, fmt.Sprintf("%s is no name of a skill; it is used as %s", clip(given, 80), r.file.Name), nameRule)
		}
	default:
		r.file.Name = given
		if given != dir {
			r.add(Warning, line, col, fmt.Sprintf("the name %s differs from the folder's, %s", given, clip(dir, 80)), "give both the same name; other programs need that")
		}
	}
	if r.file.Name == "" {
		r.add(Error, max(line, 1), max(col, 1), "the skill has no name", nameRule)
	}
}

const nameRule = "use a-z, 0-9 and single hyphens between them, at most 64"

// IsName reports whether s is a name as agentskills.io has it.
func IsName(s string) bool { return s != "" && s == slug(s) }

// slug makes a name of a text; "" if nothing is left.
func slug(s string) string {
	var b strings.Builder
	hyphen := false
	for _, c := range strings.ToLower(s) {
		if c < 'a' || c > 'z' {
			if c < '0' || c > '9' {
				hyphen = b.Len() > 0
				continue
			}
		}
		if hyphen {
			b.WriteByte('-')
			hyphen = false
		}
		b.WriteRune(c)
	}
	out := b.String()
	return strings.TrimRight(out[:min(len(out), MaxName)], "-")
}

func (r *reader) description(doc frontmatter.Document) {
	f, ok := doc.Field("description")
	text, isText := scalar(f.Value)
	r.file.Description = oneLine(text)
	switch n := utf8.RuneCountInString(r.file.Description); {
	case !ok:
		hint := "add `description: …` with what the skill does and when to use it"
		for _, other := range doc.Fields {
			if nearest(other.Key) == "description" {
				hint = fmt.Sprintf("rename %s (line %d)", other.Key, other.Line)
			}
		}
		r.add(Error, 1, 1, "the description is missing: no agent could know when to use the skill", hint)
	case !isText && f.Value.Kind != frontmatter.Null:
		r.at(Error, f.Value, fmt.Sprintf("the description must be a text, not %s", f.Value.Kind), "write what the skill does and when to use it")
	case n == 0:
		r.add(Error, f.Line, f.Col, "the description is empty: no agent could know when to use the skill", "write what the skill does and when to use it")
	case n > MaxDescription:
		r.at(Warning, f.Value, fmt.Sprintf("the description has %d characters, of which agents are told %d", n, MaxDescription), "shorten it; details belong below the closing ---")
		r.file.Description = clip(r.file.Description, MaxDescription)
	}
}

func (r *reader) text(f frontmatter.Field) string {
	s, ok := scalar(f.Value)
	if !ok && f.Value.Kind != frontmatter.Null {
		r.at(Notice, f.Value, fmt.Sprintf("%s should be a text; it was ignored", f.Key), "")
	}
	return oneLine(s)
}

// list reads a list of texts, or a text with commas or spaces between them.
func (r *reader) list(v frontmatter.Value, key string) []string {
	var out []string
	switch v.Kind {
	case frontmatter.Null:
	case frontmatter.String:
		split := func(c rune) bool { return c == ',' }
		if !strings.Contains(v.Text, ",") {
			split = unicode.IsSpace
		}
		for _, s := range strings.FieldsFunc(v.Text, split) {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	case frontmatter.List:
		for _, item := range v.Items {
			s, ok := scalar(item)
			if s = strings.TrimSpace(s); !ok || s == "" {
				r.at(Warning, item, fmt.Sprintf("an entry of %s is no text; it was ignored", key), "write a name")
				continue
			}
			out = append(out, s)
		}
	default:
		r.at(Warning, v, fmt.Sprintf("%s must be a list; it was ignored", key), "write [a, b]")
	}
	return out
}

// scalar is the text of a value that is neither list nor map nor null.
func scalar(v frontmatter.Value) (string, bool) {
	switch v.Kind {
	case frontmatter.String, frontmatter.Bool, frontmatter.Int, frontmatter.Float:
		return v.Text, true
	}
	return "", false
}

// oneLine puts single spaces in the place of line ends and other blanks, and
// drops characters that don't show.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsControl(c), unicode.In(c, unicode.Cf) && c != '\u200d', c == utf8.RuneError:
			return -1
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// clip cuts s to at most n characters, at a word if one ends near, and marks
// the cut.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	head := string([]rune(s)[:max(n-1, 0)])
	if i := strings.LastIndexByte(head, ' '); i > len(head)*3/4 {
		head = head[:i]
	}
	return strings.TrimRight(head, " ,;:.") + "…"
}
