package goclaw

import "io/fs"

// Skill is one agentskills.io folder, as far as an agent is told of it.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Location    string `json:"location"` // what the read tool takes to open its SKILL.md
	Scope       string `json:"scope"`    // bundled, home, extra or workspace
}

// Shelf is a folder outside the workspace that the file tools may read, and
// only read: a skill's. Paths that begin with Prefix are looked up in FS.
type Shelf struct {
	Prefix string // ends in a slash
	FS     fs.FS
	Dir    string // the folder on disk, for exec; "" if there is none
}
