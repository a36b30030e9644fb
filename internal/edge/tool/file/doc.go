// Package file provides the tools read, write, edit, ls, grep and glob, and
// shows the files that a message names as @path (Mentions).
//
// They work on the files of the caller's workspace and on nothing else: what
// is in reach is decided by tool.Reach, for every call anew.
//
// Invariants:
//   - write and edit replace a file only if this session has read it and it
//     is still what was read. The record of what was read lives in memory:
//     after a restart, or once it has grown out of it, the tools say "read it
//     first" again.
//   - A file is replaced as a whole, by a rename; a reader or a crash never
//     meets half of it.
//   - Every answer is bounded, and says what was left out and how to get it.
//   - Tools that change nothing are idempotent; write and edit are not.
//
// It refuses to read what isn't text, to follow a link out of the workspace
// and to open anything but regular files.
package file
