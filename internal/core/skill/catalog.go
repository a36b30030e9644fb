package skill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// Source is a SKILL.md, or what stands in its place, as it was found.
type Source struct {
	Path     string // for people
	Folder   string // the name of its folder
	Scope    string // bundled, home, extra or workspace
	Rank     int    // of two sources with one name the higher one's is used
	Location string // what the read tool takes
	Data     []byte // nil if Refused

	// Refused says why the file was not read, and Hint what to do; "" if it
	// was.
	Refused, Hint string
	// Untrusted skills are known, but not used.
	Untrusted bool
}

// Status is how a file was taken.
type Status string

// The statuses of files.
const (
	OK       Status = "ok"
	Warned   Status = "warning"
	Rejected Status = "rejected"
)

// Entry is a file and what became of it.
type Entry struct {
	goclaw.Skill
	Path      string
	Status    Status
	Untrusted bool
	File      File
	Problems  []Problem

	// OverriddenBy is the path of the nearer file with the same name, that is
	// used in this one's place; Overrides is the other side of it.
	OverriddenBy string
	Overrides    string
	rank         int
}

// Usable reports whether the entry is the one that its name stands for.
func (e Entry) Usable() bool {
	return e.Status != Rejected && !e.Untrusted && e.OverriddenBy == ""
}

// Catalog is all skills of one workspace, by name, then nearest scope first.
type Catalog struct {
	Entries []Entry
}

// Build reads the sources and decides which file each name stands for.
func Build(sources []Source) Catalog {
	var c Catalog
	for _, s := range sources {
		c.Entries = append(c.Entries, Read(s))
	}
	slices.SortStableFunc(c.Entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b.rank-a.rank, strings.Compare(a.Path, b.Path))
	})
	for from := 0; from < len(c.Entries); {
		to := from + 1
		for to < len(c.Entries) && c.Entries[to].Name == c.Entries[from].Name {
			to++
		}
		settle(c.Entries[from:to])
		from = to
	}
	return c
}

// Read reads one source by itself.
func Read(s Source) Entry {
	e := Entry{
		Skill: goclaw.Skill{Location: s.Location, Scope: s.Scope},
		Path:  s.Path, Untrusted: s.Untrusted, rank: s.Rank, Status: OK,
	}
	if s.Refused != "" {
		e.Name, e.Problems = slug(s.Folder), []Problem{{Severity: Error, Message: s.Refused, Hint: s.Hint}}
	} else {
		e.File, e.Problems = Parse(s.Folder, s.Data)
		e.Name, e.Description = e.File.Name, e.File.Description
	}
	e.grade()
	return e
}

func (e *Entry) grade() {
	has := func(s Severity) bool {
		return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Severity == s })
	}
	switch {
	case has(Error):
		e.Status = Rejected
	case has(Warning):
		e.Status = Warned
	}
}

// settle decides among entries of one name, nearest first.
func settle(same []Entry) {
	for i := range same {
		var twins []string
		for j := range same {
			if i != j && same[i].rank == same[j].rank && same[i].Status != Rejected && same[j].Status != Rejected {
				twins = append(twins, same[j].Path)
			}
		}
		if len(twins) > 0 {
			same[i].Problems = append(same[i].Problems, Problem{
				Severity: Error, Message: fmt.Sprintf("the name %s stands twice in this place, also in %s; neither is used", same[i].Name, strings.Join(twins, ", ")),
				Hint: "rename or remove one",
			})
		}
	}
	for i := range same {
		same[i].grade()
	}
	winner := -1
	for i := range same {
		if same[i].Status == Rejected || same[i].Untrusted {
			continue
		}
		if winner < 0 {
			winner = i
			continue
		}
		same[i].OverriddenBy = same[winner].Path
		if same[winner].Overrides == "" {
			same[winner].Overrides = same[i].Path
		}
	}
}

// Policy says which skills a session may know of.
type Policy struct {
	Names    []string // nil: all, an empty list: none
	Source   string   // what set Names, for people
	Disabled []string // no session knows of these
}

// Choice is what became of an entry for a session: In use, or Why not.
type Choice struct {
	Entry
	In  bool
	Why string
}

// Choose applies a policy and the machine's facts. Every entry comes back, in
// the catalogue's order. warnings are for the person: names that stand for
// nothing.
func (c Catalog) Choose(p Policy, f Facts) (choices []Choice, warnings []string) {
	seen := map[string]bool{}
	for _, e := range c.Entries {
		ch := Choice{Entry: e}
		ch.Why = why(e, p, f)
		ch.In = ch.Why == ""
		choices = append(choices, ch)
		seen[e.Name] = true
	}
	for _, list := range []struct {
		names  []string
		source string
	}{{p.Names, cmp.Or(p.Source, "skills")}, {p.Disabled, "skills.disabled"}} {
		for _, name := range list.names {
			if !seen[name] {
				warnings = append(warnings, fmt.Sprintf("%s: there is no skill %q; %s", list.source, clip(oneLine(name), 80), c.suggest(name)))
			}
		}
	}
	return choices, warnings
}

func why(e Entry, p Policy, f Facts) string {
	switch {
	case e.Status == Rejected:
		return "rejected: " + firstError(e)
	case e.Untrusted:
		return "its workspace is not trusted"
	case e.OverriddenBy != "":
		return "overridden by " + e.OverriddenBy
	case slices.Contains(p.Disabled, e.Name):
		return "skills.disabled names it"
	case p.Names != nil && !slices.Contains(p.Names, e.Name):
		return cmp.Or(p.Source, "skills") + " doesn't name it"
	}
	return e.File.Needs.Unmet(f)
}

func firstError(e Entry) string {
	for _, p := range e.Problems {
		if p.Severity == Error {
			return p.Message
		}
	}
	return ""
}

// suggest names the nearest skill, or how to find those there are.
func (c Catalog) suggest(name string) string {
	for _, e := range c.Entries {
		if e.Name == slug(name) || oneEdit(e.Name, strings.ToLower(name)) {
			return "did you mean " + e.Name + "?"
		}
	}
	return "goclaw skills list shows those there are"
}
