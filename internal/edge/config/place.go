package config

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tailscale/hujson"
)

// zone checks the name of a time zone.
func (d *decoder) zone(v hujson.Value, s, key string) {
	if s == "Local" {
		d.problem(v.StartOffset, "leave the key out for the machine's own", "%s: %q is no name of a time zone", key, s)
		return
	}
	if _, err := time.LoadLocation(s); err == nil {
		return
	}
	hint := "write a name such as Europe/Berlin or America/New_York"
	if near := zoneLike(s); near != "" {
		hint = "did you mean " + near + "?"
	}
	d.problem(v.StartOffset, hint, "%s: there is no time zone %q", key, s)
}

// zoneLike is the time zone that s names in another spelling: its cities begin
// with capitals and have no spaces.
func zoneLike(s string) string {
	r := []rune(strings.ToLower(strings.ReplaceAll(s, " ", "_")))
	for i := range r {
		if i == 0 || r[i-1] == '/' || r[i-1] == '_' || r[i-1] == '-' {
			r[i] = unicode.ToUpper(r[i])
		}
	}
	for _, name := range []string{string(r), strings.ToUpper(s)} {
		if _, err := time.LoadLocation(name); err == nil {
			return name
		}
	}
	return ""
}

// reachOnly are entries of a workspace that come in a worker's reach when they
// are named, without being shown.
func reachOnly() []string { return []string{"memory", ".git"} }

// inWorkspace checks a path relative to the workspace, and cleans it. A worker
// may be given what is reachOnly; docs may be a web address.
func (d *decoder) inWorkspace(v hujson.Value, s string, to slot, key string) {
	format := to.tag.Get("format")
	if format == "docs" && strings.Contains(s, "://") {
		d.url(v, s, key)
		return
	}
	clean := path.Clean(s)
	same := func(name string) bool { return strings.EqualFold(name, clean) }
	own := slices.IndexFunc(workspaceFiles(), same)
	switch {
	case !fs.ValidPath(clean), clean == ".", strings.HasPrefix(s, "~"), strings.Contains(s, `\`), strings.ContainsFunc(s, unicode.IsControl):
		hint := "write a path within the workspace, with slashes"
		if format == "docs" {
			hint += ", or a web address"
		}
		d.problem(v.StartOffset, hint, "%s: %q is nothing in a workspace", key, s)
		return
	case own >= 0 && workspaceFiles()[own] != clean:
		d.problem(v.StartOffset, "write "+workspaceFiles()[own], "%s: there is no workspace file %q", key, s)
		return
	case format == "file" && slices.ContainsFunc(reachOnly(), same):
		d.problem(v.StartOffset, "name a file in it; context.dailyNotes adds the notes of today and yesterday", "%s: %q is a folder", key, s)
		return
	}
	to.dst.SetString(clean)
}

// program makes the program of a command absolute if it is a path.
func (d *decoder) program(v hujson.Value, s string, to slot, key string) {
	if !strings.HasSuffix(key, "[0]") || !strings.HasPrefix(s, "~") && !strings.Contains(s, "/") {
		return
	}
	abs, err := d.absolute(s)
	if err != nil {
		d.problem(v.StartOffset, "write the whole path", "%s: %v", key, err)
		return
	}
	to.dst.SetString(abs)
}
