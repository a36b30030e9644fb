// Package telemetry sends what runs did to an OpenTelemetry collector: one
// trace per run, made from its record when it has ended.
//
// # How a run becomes a trace
//
// Nothing is measured while a run works. Its events say when each step was, how
// long it took and what it used, so that the trace of a run that was resumed by
// another process after a crash is as whole as any. The root span is the turn
// (invoke_agent AGENT); below it are its model calls (chat MODEL), its tool
// calls (execute_tool NAME), compactions, hand-offs, and the times in which it
// waited. Names and attributes are those of the semantic conventions for
// generative AI; what these have no word for begins with goclaw.
//
// A worker's run is a trace of its own. Links lead from the call that started
// it to the worker, from the worker to the run that started it, and from the
// turn that announces results to the workers whose they are. All ids come from
// the runs' ids, so that a link can be made before its other end was sent, and
// a trace that is sent twice is the same.
//
// # What it refuses
//
// Content: prompts, replies, arguments and results are sent only with
// Options.Content. Keys and headers of the collector are never logged.
//
// # Invariants
//
// Observe never blocks. A collector that fails costs traces, never a run; that
// it fails is said once, and once that it is back. What waits is bounded. Run
// sends what has ended before its context did, for a few seconds at most.
package telemetry
