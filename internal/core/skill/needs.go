package skill

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
)

// Needs is what a machine must have for a skill to be of use.
type Needs struct {
	OS      []string `json:"os,omitempty"`      // one of them, as GOOS spells it
	Bins    []string `json:"bins,omitempty"`    // all of these programs
	AnyBins []string `json:"anyBins,omitempty"` // at least one of these
	Env     []string `json:"env,omitempty"`     // all of these variables
	Always  bool     `json:"always,omitempty"`  // nothing of the above counts
}

// Facts are what a machine has.
type Facts struct {
	OS  string                 // as GOOS spells it
	Bin func(name string) bool // whether commands find the program
	Env func(name string) bool // whether the variable is set and not empty
}

// Unmet says what is missing, for a person; "" if the needs are met.
func (n Needs) Unmet(f Facts) string {
	if n.Always {
		return ""
	}
	if len(n.OS) > 0 && !slices.Contains(n.OS, f.OS) {
		return fmt.Sprintf("it is for %s, and this is %s", strings.Join(n.OS, " or "), f.OS)
	}
	if missing := without(n.Bins, f.Bin); len(missing) > 0 {
		return "commands don't find the program " + strings.Join(missing, ", ")
	}
	if len(n.AnyBins) > 0 && len(without(n.AnyBins, f.Bin)) == len(n.AnyBins) {
		return "commands find none of the programs " + strings.Join(n.AnyBins, ", ")
	}
	if missing := without(n.Env, f.Env); len(missing) > 0 {
		return "not set in the environment: " + strings.Join(missing, ", ")
	}
	return ""
}

func without(names []string, has func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), has)
}

// systems are GOOS's names for what others write.
var systems = map[string]string{
	"win32": "windows", "win": "windows", "macos": "darwin", "mac": "darwin", "osx": "darwin",
}

// ours are the keys under metadata that hold needs: GoClaw's own, OpenClaw's,
// and the one from before it had that name.
var ours = [...]string{"goclaw", "openclaw", "clawdbot"}

func (r *reader) metadata(f frontmatter.Field) {
	v := f.Value
	if v.Kind == frontmatter.String && strings.HasPrefix(strings.TrimSpace(v.Text), "{") {
		// JSON in quotes. Its places are those of the value.
		inner, problems := frontmatter.Parse([]byte("---\nmetadata: " + oneLine(v.Text) + "\n---\n"))
		field, ok := inner.Field("metadata")
		if len(problems) > 0 || !ok {
			r.at(Warning, v, "metadata can't be read; it was ignored", "write it as YAML, without quotes around the whole")
			return
		}
		v = placed(field.Value, v.Line, v.Col)
	}
	if v.Kind != frontmatter.Map {
		if v.Kind != frontmatter.Null {
			r.at(Notice, v, "metadata should be a map; it was ignored", "")
		}
		return
	}
	r.file.Metadata, _ = v.Any().(map[string]any)
	for _, key := range ours {
		own, ok := v.Field(key)
		if !ok || own.Value.Kind != frontmatter.Map {
			continue
		}
		if os, ok := own.Value.Field("os"); ok {
			r.addOS(os.Value, key+".os")
		}
		if always, ok := own.Value.Field("always"); ok && always.Value.Bool {
			r.file.Needs.Always = true
		}
		if req, ok := own.Value.Field("requires"); ok {
			r.requires(req.Value, key+".requires")
		}
	}
}

// placed gives a value and all in it one place.
func placed(v frontmatter.Value, line, col int) frontmatter.Value {
	v.Line, v.Col = line, col
	for i := range v.Items {
		v.Items[i] = placed(v.Items[i], line, col)
	}
	for i := range v.Fields {
		v.Fields[i].Line, v.Fields[i].Col = line, col
		v.Fields[i].Value = placed(v.Fields[i].Value, line, col)
	}
	return v
}

func (r *reader) requires(v frontmatter.Value, key string) {
	n := &r.file.Needs
	if v.Kind != frontmatter.Map && v.Kind != frontmatter.Null {
		r.at(Warning, v, fmt.Sprintf("%s must be a map; it was ignored", key), "write `bins: [git]` below it; known are bins, anyBins, env and os")
		return
	}
	for _, f := range v.Fields {
		switch f.Key {
		case "bins":
			r.join(&n.Bins, r.list(f.Value, key+".bins"))
		case "anyBins":
			r.join(&n.AnyBins, r.list(f.Value, key+".anyBins"))
		case "env":
			r.join(&n.Env, r.list(f.Value, key+".env"))
		case "os":
			r.addOS(f.Value, key+".os")
		default:
			r.add(Notice, f.Line, f.Col, fmt.Sprintf("%s.%s is not checked here", key, f.Key), "known are bins, anyBins, env and os")
		}
	}
}

func (r *reader) addOS(v frontmatter.Value, key string) {
	var names []string
	for _, name := range r.list(v, key) {
		name = strings.ToLower(name)
		if ours, ok := systems[name]; ok {
			name = ours
		}
		names = append(names, name)
	}
	r.join(&r.file.Needs.OS, names)
}

func (r *reader) join(to *[]string, more []string) {
	for _, m := range more {
		if !slices.Contains(*to, m) {
			*to = append(*to, oneLine(m))
		}
	}
}
