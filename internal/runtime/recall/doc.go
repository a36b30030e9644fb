// Package recall keeps the index of agents' memory up to date and answers
// searches in it: over the notes of workspaces and the recorded turns of main,
// channel and API sessions.
//
// A search looks first whether anything has changed since the last one, so it
// sees a note that was saved a moment ago; nothing is watched, and a gateway
// that nobody uses does no work. Run embeds new chunks in the background, if
// there is a model for it.
//
// It refuses to index workers' sessions, to show anybody what access.go keeps
// from them, and to fail a search because an embedding model does not answer:
// that is said in the answer.
//
// Invariants: one update at a time; what was removed is not found any more; a
// turn is indexed once, after it has ended.
package recall
