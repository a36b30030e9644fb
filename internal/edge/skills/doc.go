// Package skills finds the skill folders of an agent: those in the program,
// GOCLAW_HOME/skills, the configured folders, and the workspace's skills.
//
// A Library reads each folder's SKILL.md and says what it could not read. What
// a file means, and which of two with one name counts, is not its business.
//
// It refuses to follow a link out of the place that it was told to look in, to
// wait for what is not a regular file, and to read more than a megabyte. It
// changes nothing.
//
// Invariants: an unchanged place costs stats and no read, and gives the very
// same Tree; a file's bytes come from inside its place even if somebody swaps
// folders for links meanwhile; a Shelf shows one skill's folder and nothing
// around it.
package skills
