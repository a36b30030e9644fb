package sandbox

import (
	"context"
	"io"
	"time"
)

// Grace is how long a command may take to end after it was asked to, before
// it is killed.
const Grace = 250 * time.Millisecond

// Path is where commands look for programs.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"

// Sandbox runs commands in confinement.
type Sandbox interface {
	// Name is what people know it by.
	Name() string

	// Run runs a command until it ends. When ctx ends first, all its
	// processes are asked to end and killed after Grace; Run then returns
	// ctx's cause. An error means that the command didn't run, or was not
	// run to its end; the command's own failure is an exit code. In either
	// case none of its processes is left. Run is safe for concurrent use.
	Run(ctx context.Context, job Job) (Result, error)
}

// Job is one command and what it may see. All paths are absolute and hold no
// links.
type Job struct {
	Command string    // for the shell
	Dir     string    // where it starts, in Workspace
	Env     []string  // beyond the few variables that every command has
	Output  io.Writer // gets both of its output streams, as they come

	Workspace string
	// Private reports whether an entry at the workspace's root must neither
	// be seen nor be made; nil if there is none. See the package comment.
	Private func(name string) bool
	// Kept reports whether an entry at the root may be seen, and neither be
	// changed nor be made; nil if there is none. Files of that kind are shown
	// as copies, folders read-only. It is for jobs with Private.
	Kept func(name string) bool
	// Lent are files within folders that Private hides; copies of them are
	// shown all the same.
	Lent []Lent
	// Rule names what Private hides and Kept keeps: jobs of one workspace share a stage only
	// if their rules have one name.
	Rule string
	// StageDir is an existing folder on the workspace's file system for what
	// is temporary; it is needed with Private. What jobs leave there that were
	// killed is removed by later ones.
	StageDir string
	// Hidden files and folders don't show, wherever they are. Shown folders
	// beneath them do, read-only.
	Hidden, Shown []string

	ReadOnly []string // further files and folders of the host that it may read
	Network  bool
}

// Lent is a file that is shown as a copy.
type Lent struct {
	Name string // where: relative to the workspace, with slashes
	Path string // the file
}

// Result is how a command ended.
type Result struct {
	ExitCode int // 128+n if signal n ended it
	// Discarded says which changes at the workspace's root were not made, and
	// why, one a line.
	Discarded []string
}
