// Package workspace reads and lays out an agent's folder: the eight markdown
// files that make an agent what it is, those that the configuration adds, and
// the notes of days.
//
// Prepare writes the templates into a fresh folder. A Loader reads the files
// for a prompt: capped in length, cached while they don't change, and with a
// warning for everything that it could not take as it stands. Sections reads
// the person's own sections of prompts. Notes adds to the notes of days.
//
// It refuses to overwrite anything, to bring a deleted file back (BOOTSTRAP.md
// least of all), to follow a link out of the folder, and to give the content
// of a private file, memory/ or .git under another name, whatever links lead
// there: what a worker may read under one name it must not get under another.
// It decides nothing about who may see which file.
//
// Invariants: the eight files always come back, in the order of Names, and the
// others after them; reading never waits for what is not a regular file; an
// unchanged file costs no read and no copy; a note is there whole or not at
// all, once for each mark.
package workspace
