package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"goclaw"
	"goclaw/internal/core/frontmatter"
	"goclaw/internal/core/schema"
)

// tagName is what can stand as an XML tag around a slice or an answer.
var tagName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// block reads the fields of a map by a table; a key that isn't in it is an
// error, because nothing else has these keys.
func (p *parser) block(what string, v frontmatter.Value, readers map[string]func(frontmatter.Field)) bool {
	if v.Kind != frontmatter.Map {
		p.at(LevelError, v, fmt.Sprintf("%s is %s, not a map", what, v.Kind), "write its keys below it, indented")
		return false
	}
	for _, f := range v.Fields {
		if read, ok := readers[f.Key]; ok {
			read(f)
			continue
		}
		keys := make([]string, 0, len(readers))
		for k := range readers {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		hint := "it has " + strings.Join(keys, ", ")
		if i := slices.IndexFunc(keys, func(k string) bool { return schema.Near(f.Key, k) }); i >= 0 {
			hint = fmt.Sprintf("did you mean %s?", keys[i])
		}
		p.add(LevelError, f.Line, f.Col, fmt.Sprintf("unknown key %q in %s", f.Key, what), hint)
	}
	return true
}

// each reads a list of maps.
func (p *parser) each(what string, v frontmatter.Value, read func(frontmatter.Value)) {
	if v.Kind != frontmatter.List {
		p.at(LevelError, v, fmt.Sprintf("%s is %s, not a list", what, v.Kind), "write one entry per line, each after a dash")
		return
	}
	for _, item := range v.Items {
		read(item)
	}
}

// typed reads the key goclaw.
func (p *parser) typed(v frontmatter.Value) {
	t := &p.Typed
	p.block("goclaw", v, map[string]func(frontmatter.Field){
		"version": func(f frontmatter.Field) { t.Version = p.whole(f, 1, 1) },
		"promptMode": func(f frontmatter.Field) {
			t.PromptMode = goclaw.PromptMode(p.oneOf(f, string(goclaw.PromptMinimal), string(goclaw.PromptNone)))
		},
		"inherit": func(f frontmatter.Field) { t.Inherit = p.inherit(f) },
		"input":   func(f frontmatter.Field) { t.Input = p.schema(f) },
		"context": func(f frontmatter.Field) { p.each("context", f.Value, p.slice) },
		"output":  func(f frontmatter.Field) { p.output(f.Value) },
		"artifacts": func(f frontmatter.Field) {
			p.each("artifacts", f.Value, p.artifact)
		},
		"limits": func(f frontmatter.Field) { p.limits(f.Value) },
		"next":   func(f frontmatter.Field) { t.Next = p.next(f) },
	})
}

func (p *parser) inherit(f frontmatter.Field) []string {
	names := p.names(f)
	for i, name := range names {
		if name != path.Base(name) || name == "." || name == ".." || strings.ContainsAny(name, `\*?`) {
			at := f.Value
			if i < len(f.Value.Items) {
				at = f.Value.Items[i]
			}
			p.at(LevelError, at, fmt.Sprintf("inherit holds %q, which is no file at the workspace's root", name), "write a name such as AGENTS.md")
			return nil
		}
	}
	return names
}

// schema checks a JSON Schema by compiling it.
func (p *parser) schema(f frontmatter.Field) json.RawMessage {
	if f.Value.Kind != frontmatter.Map {
		p.at(LevelError, f.Value, fmt.Sprintf("%s is %s, not a JSON Schema", f.Key, f.Value.Kind), "write a map such as {type: object, properties: {…}}")
		return nil
	}
	raw, err := json.Marshal(f.Value.Any())
	if err == nil {
		_, err = schema.Compile(raw)
	}
	var flaw *schema.Flaw
	switch {
	case errors.As(err, &flaw):
		p.at(LevelError, below(f.Value, flaw.At), fmt.Sprintf("%s is no valid JSON Schema: %s", f.Key, flaw.What), "see json-schema.org")
		return nil
	case err != nil:
		p.at(LevelError, f.Value, fmt.Sprintf("%s is no valid JSON Schema: %v", f.Key, err), "see json-schema.org")
		return nil
	}
	return raw
}

// below finds the part of a value that a JSON pointer means; where it ends
// early, the last part on its way.
func below(v frontmatter.Value, pointer string) frontmatter.Value {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if f, ok := v.Field(key); ok {
			v = f.Value
		} else if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v.Items) {
			v = v.Items[i]
		}
	}
	return v
}

func (p *parser) slice(v frontmatter.Value) {
	s := Slice{Overflow: "error", Line: v.Line, Col: v.Col}
	sources := 0
	source := func(to *string) func(frontmatter.Field) {
		return func(f frontmatter.Field) {
			sources++
			if *to = strings.TrimSpace(p.text(f)); f.Value.Kind == frontmatter.String && *to == "" {
				p.at(LevelError, f.Value, f.Key+" is empty", "name what the slice is made of")
			}
			if f.Key == "file" || f.Key == "glob" {
				p.local(f)
			}
		}
	}
	if !p.block("a slice of context", v, map[string]func(frontmatter.Field){
		"file": source(&s.File), "glob": source(&s.Glob), "from": source(&s.From), "artifact": source(&s.Artifact),
		"tag":       func(f frontmatter.Field) { s.Tag = p.tag(f) },
		"optional":  func(f frontmatter.Field) { s.Optional = p.yes(f) },
		"maxTokens": func(f frontmatter.Field) { s.MaxTokens = p.whole(f, 1, 10_000_000) },
		"overflow":  func(f frontmatter.Field) { s.Overflow = p.oneOf(f, "error", "cut", "outline") },
	}) {
		return
	}
	if sources != 1 {
		p.at(LevelError, v, fmt.Sprintf("a slice has %d sources", sources), "give exactly one of file, glob, from, artifact")
	}
	p.Typed.Context = append(p.Typed.Context, s)
}

// local refuses paths that lead out of the workspace on their face.
func (p *parser) local(f frontmatter.Field) {
	name := f.Value.Text
	if path.IsAbs(name) || strings.HasPrefix(name, "~") || strings.Contains(name, `\`) || slices.Contains(strings.Split(name, "/"), "..") {
		p.at(LevelError, f.Value, fmt.Sprintf("%s %q is no path inside the workspace", f.Key, name), "write it relative to the workspace, with slashes")
	}
}

func (p *parser) tag(f frontmatter.Field) string {
	tag := p.text(f)
	if f.Value.Kind == frontmatter.String && !tagName.MatchString(tag) {
		p.at(LevelError, f.Value, fmt.Sprintf("tag %q is no XML name", tag), "write letters, digits, _ and -")
	}
	return tag
}

func (p *parser) output(v frontmatter.Value) {
	o := Output{Retries: 1}
	if !p.block("output", v, map[string]func(frontmatter.Field){
		"format":  func(f frontmatter.Field) { o.Format = p.oneOf(f, "xml", "json") },
		"tag":     func(f frontmatter.Field) { o.Tag = p.tag(f) },
		"schema":  func(f frontmatter.Field) { o.Schema = p.schema(f) },
		"stop":    func(f frontmatter.Field) { o.Stop = p.stops(f) },
		"retries": func(f frontmatter.Field) { o.Retries = p.whole(f, 0, 10) },
	}) {
		return
	}
	_, format := v.Field("format")
	tag, tagged := v.Field("tag")
	form, schemed := v.Field("schema")
	switch {
	case !format:
		p.at(LevelError, v, "output has no format", "write format: json or format: xml")
	case o.Format == "xml" && !tagged:
		p.at(LevelError, v, "output of the format xml has no tag", "name the root element, as in tag: plan")
	case o.Format == "xml" && schemed:
		p.add(LevelError, form.Line, form.Col, "output of the format xml has a schema", "remove it, or write format: json")
	case o.Tag == "findings" && p.EmitFindings:
		p.add(LevelError, tag.Line, tag.Col, "the tag findings is where emitStructuredFindings has its own", "give the answer another tag")
	case o.Format == "json" && tagged:
		p.add(LevelError, tag.Line, tag.Col, "output of the format json has a tag", "remove it, or write format: xml")
	}
	p.Typed.Output = &o
}

// stops reads stop sequences, which are taken as they are written.
func (p *parser) stops(f frontmatter.Field) []string {
	var out []string
	p.each("stop", f.Value, func(v frontmatter.Value) {
		if v.Kind != frontmatter.String || v.Text == "" {
			p.at(LevelError, v, "stop holds "+kindOf(v), "write texts in quotes")
			return
		}
		out = append(out, v.Text)
	})
	return out
}

func (p *parser) artifact(v frontmatter.Value) {
	a := Artifact{Min: 1}
	if !p.block("an artifact", v, map[string]func(frontmatter.Field){
		"path": func(f frontmatter.Field) { a.Path = strings.TrimSpace(p.text(f)); p.local(f) },
		"min":  func(f frontmatter.Field) { a.Min = p.whole(f, 0, 10_000) },
	}) {
		return
	}
	if a.Path == "" {
		p.at(LevelError, v, "an artifact has no path", "name the file or glob that must exist at the end")
	}
	p.Typed.Artifacts = append(p.Typed.Artifacts, a)
}

func (p *parser) limits(v frontmatter.Value) {
	l := &p.Typed.Limits
	p.block("limits", v, map[string]func(frontmatter.Field){
		"contextPercent": func(f frontmatter.Field) { l.ContextPercent = p.whole(f, 1, 100) },
		"contextTokens":  func(f frontmatter.Field) { l.ContextTokens = p.whole(f, 1, 100_000_000) },
		"onLimit":        func(f frontmatter.Field) { l.OnLimit = p.oneOf(f, "handoff", "fail") },
		"maxHandoffs": func(f frontmatter.Field) {
			n := p.whole(f, 0, 1000)
			l.MaxHandoffs = &n
		},
		"resultTokens": func(f frontmatter.Field) {
			n := p.whole(f, 0, 100_000_000)
			l.ResultTokens = &n
		},
	})
}
