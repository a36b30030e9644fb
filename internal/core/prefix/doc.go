// Package prefix compares model requests the way that prompt caches see them:
// from the first byte on, tools, then the system prompt, then the messages.
//
// Parts takes a request body apart, in any of the forms that a provider sends
// (the members tools, system and messages, or system messages instead of the
// second). Diff finds the first byte at which two requests differ, and the
// part that it belongs to.
//
// It refuses to guess: a body that is no such JSON is an error. Cache
// breakpoints are left out, because they move from call to call. Invariants:
// Diff is symmetric, equal requests have no difference, and what Diff counts
// are the bytes of the parts, nothing between them.
package prefix
