package goclaw

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Access is who wants to see something: the one place that decides what a kind
// of session may see (spec section 3.2). Prompts, file tools, the sandbox,
// @file, slices, memory and session tools all ask it.
type Access struct {
	Session SessionKey
	Strict  bool     // what is private to the main agent is out of reach
	Named   []string // paths of the workspace that a person named for this session
	Run     string   // whose kept output stays in reach
	Root    string   // of the run's tree, for the artifacts of its siblings; "" for none
}

// Access returns what a run with this profile may see. run may be "".
func (p Profile) Access(session SessionKey, run string) Access {
	return Access{Session: session, Strict: p.Strict, Named: p.Inherit, Run: run}
}

// privateEntries are the entries at a workspace's root that belong to the main
// agent alone. The history in .git may hold any of the others.
var privateEntries = [...]string{
	"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md",
	"MEMORY.md", "memory", ".git",
}

// guidingEntries are shown to the main agent, or tell it what to do, and are
// not private: a worker that could change them would speak to every later turn.
var guidingEntries = [...]string{
	"AGENTS.md", "TOOLS.md", "skills", ".goclaw", ".claude", ".opencode",
}

// PrivateEntries lists what is private to the main agent, at the root of its
// workspace.
func PrivateEntries() []string { return slices.Clone(privateEntries[:]) }

// Thing is something that a session may or may not see. Exactly one of Entry,
// Session and Artifact is set.
type Thing struct {
	// Entry is a path relative to the workspace, with slashes; its first part
	// is spelled as in PrivateEntries. Where spellings and links matter, ask
	// the file tools' Reach, which asks here.
	Entry string

	Session   SessionKey // a transcript
	Requester SessionKey // who asked for that session's run, if it was spawned

	// Artifact is the run that left it.
	Artifact *Run
}

// MaySee decides. why says, for a person, what stands against it.
func (a Access) MaySee(t Thing) (ok bool, why string) {
	if t.Entry != "" {
		if a.Strict && isPrivate(t.Entry) && !a.names(t.Entry) {
			return false, "private to the main agent"
		}
		return true, ""
	}
	if t.Artifact != nil {
		return a.mayRead(*t.Artifact)
	}
	switch {
	case t.Session == a.Session, !t.Requester.IsZero() && t.Requester == a.Session:
		return true, ""
	case a.Session.IsWorker():
		return false, "a worker can't read other sessions"
	case t.Session.Agent != a.Session.Agent:
		return false, fmt.Sprintf("%s belongs to another agent", t.Session)
	case a.Session.Kind != KindMain:
		return false, "only the agent's main session can read others' conversations"
	}
	return true, ""
}

// mayRead decides about what the run r left. A session reads what its own runs
// and its workers left. A worker also reads what other spawned runs of its tree
// left, unless they saw something private that it may not see.
func (a Access) mayRead(r Run) (ok bool, why string) {
	switch {
	case r.Session == a.Session, !r.Requester.IsZero() && r.Requester == a.Session:
		return true, ""
	case !a.Session.IsWorker():
		return false, "only artifacts of this session and of its workers can be read here"
	case a.Root == "" || r.Root != a.Root || r.Trigger != TriggerSpawn:
		return false, "a worker reads only artifacts of its own, of its workers, and of other workers of the same tree"
	}
	theirs := r.Profile.Access(r.Session, r.ID)
	for _, entry := range append(PrivateEntries(), theirs.Lifted()...) {
		if saw, _ := theirs.MaySee(Thing{Entry: entry}); !saw {
			continue
		}
		if ok, _ := a.MaySee(Thing{Entry: entry}); !ok {
			return false, fmt.Sprintf("the worker that left it may see %s, this one may not", entry)
		}
	}
	return true, ""
}

// Hidden lists the private entries that are out of this session's reach, but
// for what Lifted names beneath them.
func (a Access) Hidden() []string {
	return slices.DeleteFunc(PrivateEntries(), func(entry string) bool {
		ok, _ := a.MaySee(Thing{Entry: entry})
		return ok
	})
}

// Lifted lists what is private and was named for this session, sorted: whole
// entries ("USER.md", "memory") or paths beneath them ("memory/plan.md"). It
// may be read, and not changed.
func (a Access) Lifted() []string {
	if !a.Strict {
		return nil
	}
	var lifted []string
	for _, name := range a.Named {
		if name = path.Clean(name); isPrivate(name) {
			lifted = append(lifted, name)
		}
	}
	slices.Sort(lifted)
	return slices.Compact(lifted)
}

// ReadOnly lists what this session may see and not change: what guides the
// main agent's later turns, and what was lifted.
func (a Access) ReadOnly() []string {
	if !a.Strict {
		return nil
	}
	return append(slices.Clone(guidingEntries[:]), a.Lifted()...)
}

// names reports whether entry was named, or something around it.
func (a Access) names(entry string) bool {
	return slices.ContainsFunc(a.Named, func(name string) bool {
		name = path.Clean(name)
		return entry == name || strings.HasPrefix(entry, name+"/")
	})
}

func isPrivate(entry string) bool {
	top, _, _ := strings.Cut(entry, "/")
	return slices.Contains(privateEntries[:], top)
}
