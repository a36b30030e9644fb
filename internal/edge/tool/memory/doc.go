// Package memory holds the tools by which an agent looks up what it was told
// and did before, and keeps what lasts: memory_search, memory_get and
// memory_write.
//
// It refuses to write for workers, whoever named the tool for them: what a
// person lifted for a worker may be read, not changed. What a caller may read
// is decided where it is read, by access.go.
//
// Invariants: a call that runs again after a crash writes nothing twice.
package memory
