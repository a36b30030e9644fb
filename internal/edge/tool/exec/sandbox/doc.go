// Package sandbox runs one shell command where it can do no harm.
//
// A command sees the system's programs read-only, its workspace read-write, a
// temporary folder of its own, and nothing else: no other files, no other
// processes, no environment but the one it is given, and no network unless
// that is allowed. When Run returns, every process that the command started
// has ended.
//
// There are two sandboxes. Bubblewrap builds namespaces in which what isn't
// allowed doesn't exist. Where it is missing or doesn't work, Landlock (ABI 6,
// Linux 6.12) with a seccomp filter denies access instead; it works on a
// re-executed copy of this program, so main must call MaybeChild first of all.
// Where neither works there is no sandbox, and the caller must refuse.
//
// # Private entries at the workspace's root
//
// A mask over a file can't be trusted here: it goes away when somebody outside
// replaces the file by a rename, as editors do, and a file that doesn't exist
// yet can't be masked at all. So a job with Private entries doesn't get the
// workspace's root, but a stage: a folder that holds a hard link to each other
// file, and each other folder as a mount (with Landlock: as a link). Jobs that
// run at the same time on one workspace share its stage, so that appending to
// one file, or making one folder, means what it always means. When a job ends,
// before its Run returns, what commands have made, replaced or removed on the
// stage is published: files as second names of the stage's own, so that a
// command that still runs feeds both. Private names are discarded and
// reported. Where somebody else has changed the same file meanwhile, the newer
// version has the name and the other is kept beside it, which is reported.
// Hence, for such a job only:
//   - new entries at the root appear in the workspace when a job ends, and not
//     at all if this program is killed before;
//   - folders at the root can't be removed or renamed by the command;
//   - a command that was running already doesn't see what others put at the
//     root meanwhile, until another job begins.
//
// Entries that are Kept may be read, and not changed: their folders are mounted
// (with Landlock: granted) read-only, their files are copies on the stage, and
// so are the Lent files of folders that are private otherwise. What a command
// does to a copy, or makes under such a name, is discarded and reported. This
// holds for names at the root: a second name that such a file has deeper in
// the workspace, or a link at the root to a file there, doesn't protect that
// one.
//
// A stage that a killed program left is removed by the next job.
//
// # Limits of Landlock
//
// The names of entries beside a hidden one below the root can't be listed.
// There is no /proc and no /tmp (TMPDIR is set). With staging, the current
// folder is the stage's path, not the workspace's. Sockets of all kinds but
// socketpair are closed: a host's daemons listen on Unix sockets, and Landlock
// doesn't guard those before ABI 9.
//
// # Other limits
//
// Where this program may not make a process namespace but bwrap may (it is
// setuid, or has a security profile of its own), the last processes end some
// milliseconds after Run has returned, and a program killed while bwrap sets
// up can leave an idle bwrap process behind.
//
// Memory and disk space are not limited.
package sandbox
