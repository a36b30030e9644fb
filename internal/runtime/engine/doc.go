// Package engine executes runs durably: it accepts, claims, steps, ends,
// cancels and recovers them. One executor serves every trigger.
//
// The protocol: a run is accepted in one transaction and `accepted` is said
// only after it. A claim gives it an epoch and an owner; every later write is
// fenced by both, so an owner that lost its lease can't write. The assembled
// prompt is event 0 and is never assembled again. A model reply is recorded
// together with the intents of its tool calls before the first of them runs;
// each result is a step of its own. The end, the state and the announcement
// are one transaction. What a requester's turn consumes is marked in the
// transaction that appends it to the transcript.
//
// The package refuses to know vendors, channels and files. It is the only
// place that calls models. Invariants: an accepted run ends, and is announced
// exactly once; a recorded model call is never made again; a call with side
// effects is never run twice by itself.
package engine
