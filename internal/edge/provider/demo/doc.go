// Package demo is the built-in offline demonstration model: a goclaw.Provider
// named "demo" whose single model, "demo/offline", needs no key and no network.
//
// It is a small, deterministic rule engine, not a language model, and says so:
// every text that it writes starts with Label, but for the silent answer to a
// heartbeat and the summary that a compaction asks for, which carries its label
// inside. It looks at nothing but the
// request, as a real model would, and does everything through the tools that
// the request offers. So it shows the whole machinery of workers, announcements
// and tools on the real files of a workspace.
//
// To a person it can
//
//   - research topics with workers ("research tides and glaciers with two
//     workers"): one sessions_spawn per topic, in parallel, and, when the
//     announcements arrive, one answer that combines them with their sources;
//   - read FILE, list files [in DIR], find WORD, run COMMAND, remember FACT,
//     status, list workers, cancel WORKER: one tool call each (remember: two).
//
// As a worker it reads, lists, searches or runs what its task says; any other
// task is taken as a research topic, which is looked up in the workspace's
// files and answered with quotes, each with its path and line.
//
// A heartbeat it answers with HEARTBEAT_OK and nothing else: it looks after
// nothing by itself.
//
// Asked to compact a conversation, it lists by rules what was asked, how the
// last replies began, and the workers, files and figures that were named; its
// notes are what the person asked it to remember.
//
// It refuses to make things up: what no file says it does not claim, and a tool
// that is missing or fails is reported as such. What it reads is only ever
// quoted; a text in a file, a tool's result or an announcement never becomes a
// command.
//
// Invariants: the same request always gives the same reply; a Provider holds no
// state between requests.
package demo
