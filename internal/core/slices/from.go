package slices

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"goclaw/internal/core/definition"
	"goclaw/internal/core/frontmatter"
	"goclaw/internal/core/typed"
)

// from finds the files that something else names.
func (a *assembler) from(s definition.Slice) ([]Found, error) {
	if tag, ok := strings.CutPrefix(s.From, "mentions:"); ok {
		texts, err := a.texts(strings.TrimSpace(tag), s)
		if err != nil {
			return nil, err
		}
		return a.mentioned(texts, s)
	}
	if v, ok := typed.Field(a.input, s.From); ok {
		return a.listed(v, s)
	}
	head, field, dotted := strings.Cut(s.From, ".")
	if !dotted {
		return nil, a.unknown(head, s)
	}
	texts, err := a.texts(head, s)
	if err != nil {
		return nil, err
	}
	values, found, err := fields(texts, strings.Split(field, "."))
	switch {
	case err != nil:
		return nil, err
	case found:
		return a.listed(values, s)
	case field == "files":
		return a.mentioned(texts, s)
	}
	return nil, missing("the front matter of %s has no field %s", head, field)
}

// unknown is the error for a name that neither the input nor a slice has.
func (a *assembler) unknown(name string, s definition.Slice) error {
	if s.Optional {
		return missing("the input has no field %s", name)
	}
	tags := make([]string, 0, len(a.whole))
	for _, w := range a.whole {
		if !slices.Contains(tags, w.tag) {
			tags = append(tags, w.tag)
		}
	}
	known := "no slice stands before it"
	if len(tags) > 0 {
		known = "the slices before it are " + strings.Join(tags, ", ")
	}
	return absent{refusal{"neither a field of the input nor an earlier slice is called " + name + " (" + known + ")",
		"write a field of the input, TAG.field, TAG.files or mentions:TAG"}}
}

// texts are what an earlier slice holds, else what a field of the input names
// or holds.
func (a *assembler) texts(name string, s definition.Slice) ([]Found, error) {
	var texts []Found
	for _, w := range a.whole {
		if w.tag == name {
			texts = append(texts, w.Found)
		}
	}
	if len(texts) > 0 {
		return texts, nil
	}
	v, ok := typed.Field(a.input, name)
	text, isText := v.(string)
	switch {
	case !ok:
		return nil, a.unknown(name, s)
	case !isText || strings.TrimSpace(text) == "":
		return nil, missing("the field %s of the input is no text", name)
	case strings.Contains(text, "\n"):
		return []Found{{Source: name, Text: text, Size: len(text)}}, nil
	}
	if err := local(text); err != nil {
		return nil, err
	}
	return a.read.Files([]Want{{Name: nameOf(s), File: text, Optional: s.Optional}})
}

// fields collects a field of the front matters; found is false if none has it.
func fields(texts []Found, keys []string) (values []any, found bool, err error) {
	for _, t := range texts {
		doc, problems := frontmatter.Parse([]byte(t.Text))
		if len(problems) > 0 && strings.HasPrefix(t.Text, "---") {
			p := problems[0]
			return nil, false, refuse(p.Hint, "the front matter of %s can't be read, line %d: %s", t.Source, p.Line, p.Message)
		}
		at := frontmatter.Value{Kind: frontmatter.Map, Fields: doc.Fields}
		ok := true
		for _, key := range keys {
			var f frontmatter.Field
			if f, ok = at.Field(key); !ok {
				break
			}
			at = f.Value
		}
		if !ok {
			continue
		}
		found = true
		if list, isList := at.Any().([]any); isList {
			values = append(values, list...)
		} else if at.Kind != frontmatter.Null {
			values = append(values, at.Any())
		}
	}
	return values, found, nil
}

// listed reads the files that a value names: a path, or a list of paths.
func (a *assembler) listed(v any, s definition.Slice) ([]Found, error) {
	items, ok := v.([]any)
	if !ok {
		items = []any{v}
	}
	var wants []Want
	for _, item := range items {
		name, ok := item.(string)
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, refuse("give texts, each the path of a file", "%s is no list of paths", s.From)
		}
		if err := local(name); err != nil {
			return nil, err
		}
		name = path.Clean(name)
		if !slices.ContainsFunc(wants, func(w Want) bool { return w.File == name }) {
			wants = append(wants, Want{Name: nameOf(s), File: name, Optional: s.Optional})
		}
		if len(wants) > maxListed {
			return nil, refuse("name fewer", "%s names more than %d files", s.From, maxListed)
		}
	}
	if len(wants) == 0 {
		return nil, missing("%s is empty", s.From)
	}
	return a.read.Files(wants)
}

// mentioned reads the files that texts mention. What is no file that the worker
// may read is left out: a plan also names files that it is yet to make.
func (a *assembler) mentioned(texts []Found, s definition.Slice) ([]Found, error) {
	var wants []Want
	for _, t := range texts {
		for _, name := range mentions(t.Text) {
			known := slices.ContainsFunc(wants, func(w Want) bool { return w.File == name }) ||
				slices.ContainsFunc(texts, func(t Found) bool { return t.Source == name })
			if !known && len(wants) < maxMentioned {
				wants = append(wants, Want{Name: nameOf(s), File: name, Optional: true, Lenient: true})
			}
		}
	}
	if len(wants) == 0 {
		return nil, missing("%s mentions no file", s.From)
	}
	found, err := a.read.Files(wants)
	if err == nil && len(found) == 0 {
		return nil, missing("no file that %s mentions exists", s.From)
	}
	return found, err
}

var (
	ticked    = regexp.MustCompile("`([^`\\s]{1,255})`")
	extension = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9]{0,9}$`)
)

// pathLike reports whether a word has only characters that are usual in paths.
func pathLike(w string) bool {
	return w != "" && !strings.HasPrefix(w, "/") && !strings.ContainsFunc(w, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.@+()[]/-", r)
	})
}

// mentions lists the words of a text that can be paths of files, each once, in
// order: they hold a slash or end with an extension, and are no addresses.
func mentions(text string) []string {
	var found []string
	seen := map[string]bool{}
	add := func(w string) {
		w = strings.TrimPrefix(strings.TrimRight(w, ".,;:!?"), "./")
		if len(w) > 255 || !pathLike(w) || !strings.Contains(w, "/") && !extension.MatchString(w) {
			return
		}
		if w = path.Clean(w); local(w) == nil && !seen[w] && w != "." {
			seen[w] = true
			found = append(found, w)
		}
	}
	for line := range strings.Lines(text) {
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			add(m[1])
		}
		for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`()<>[]{}|,;*=", r) }) {
			if strings.Contains(w, "://") {
				continue
			}
			before, _, _ := strings.Cut(w, ":")
			add(before)
		}
	}
	return found
}
