// Package recall is how an agent's memory is searched, without the search's
// storage: it cuts texts into chunks, takes questions apart, ranks the chunks
// that an index found for them, and words the snippets.
//
// It refuses to know where notes lie, who may see them and what time it is.
//
// Invariants: equal text gives equal chunks with equal ids, and the chunks of a
// text hold all of its words; terms are made the same way of texts and of
// questions; no input makes it panic.
package recall
