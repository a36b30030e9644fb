// Package tool decides what the file tools and exec may touch.
//
// A Reach is opened for one call. It confines paths to the run's workspace and
// keeps three things out of reach: GOCLAW_HOME for everybody, and, when the
// run is strict (a worker's), the main agent's private files at the root of
// the workspace and the command output that other runs kept.
//
// Invariants:
//   - What is private to the main agent, what was lifted by name, and what a
//     worker may read and not change is goclaw.Access's to say. Reach.Allow and
//     AllowChange apply it to paths, and are the only places that do. They are
//     asked for every component on the way to a file, by its name with all
//     links resolved, and by its identity, so that no spelling, symbolic link
//     or hard link leads around them.
//   - What was lifted is in reach by its own name; other names of the same
//     file are as private as before.
//   - Folders are entered one component at a time and never through a link
//     (Dir); what was opened is compared with what was allowed, so that
//     swapping a folder for a link in between gains nothing.
//   - Only regular files are opened, and never in a way that can block.
//
// It refuses to guess: names are compared without regard to case, Unicode
// compatibility forms, invisible characters and trailing dots and spaces, on
// every file system. A worker is therefore also refused a "Soul.md" that
// would be a different file where case matters.
//
// Other names of private files are found by device and inode number. Where the
// system has none (Windows), hard links to the files at the workspace's root
// are still recognised, those to files in private folders are not.
package tool
