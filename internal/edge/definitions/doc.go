// Package definitions finds definition files: the built-in ones, those of the
// home, and those that come with a workspace.
//
// It reads files and judges none of them: what a file means is decided by
// whoever parses it. It refuses to follow a link out of a scope's folder, and to
// open anything but a regular file.
//
// Invariants: every file that it finds comes back, the unreadable ones with the
// reason; it never waits for what is not a regular file; an unchanged file costs
// one stat and no read, and a changed one is read anew by the next List, without
// anything watching it.
package definitions
