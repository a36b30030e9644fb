// Package sqlite is an index of memory in a SQLite file of its own: full text
// by FTS5, vectors by sqlite-vec.
//
// The file is made, for its owner alone, when it is first needed. One that is
// damaged, or that another version made, is emptied and filled anew: it holds
// nothing that is not elsewhere. It refuses a file of another program.
//
// Invariants: a document's chunks change together; the methods are safe for
// concurrent use, by several processes as well.
package sqlite
