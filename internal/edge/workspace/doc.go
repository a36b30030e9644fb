// Package workspace reads and lays out an agent's folder: the eight markdown
// files that make an agent what it is.
//
// Prepare writes the templates into a fresh folder. A Loader reads the files
// for a prompt: capped in length, cached while they don't change, and with a
// warning for everything that it could not take as it stands.
//
// It refuses to overwrite anything, to bring a deleted file back (BOOTSTRAP.md
// least of all), and to follow a link out of the folder or from one of the
// eight files to another: what a worker may read under one name it must not
// get under another. It decides nothing about who may see which file; it reads
// no other file.
//
// Invariants: the eight files always come back, in the order of Names; reading
// never waits for what is not a regular file; an unchanged folder costs one
// stat per file and no read.
package workspace
