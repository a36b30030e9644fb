// Package exec provides the tool exec: a shell command in a sandbox.
//
// Invariants:
//   - A command never runs outside a sandbox. Where there is none the tool
//     says why and refuses.
//   - GOCLAW_HOME doesn't exist for any command; for a strict run (a worker's)
//     the main agent's private files and other runs' kept output don't either,
//     under any of their names. What is private is decided by tool.Reach.
//   - The environment holds nothing of this process's: no keys, no paths.
//   - When a call returns, no process of its command is left, whether it ended,
//     ran out of time or was cancelled.
//   - A result is bounded. Of longer output the head and the tail are
//     returned, and the whole is kept in a file of the workspace that the
//     result names.
//
// A command that fails is a failed result, so that the model sees what it
// printed. It is not idempotent: after a crash it is never run again by itself.
package exec
