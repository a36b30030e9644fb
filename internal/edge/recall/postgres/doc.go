// Package postgres is an index of memory in tables of the PostgreSQL database
// that also holds the record: full text by tsvector, vectors by pgvector where
// the database has that extension. Where it has not, they are compared here,
// one by one, and Vectors says so.
//
// The tables are made when they are first needed, and made anew when another
// version made them: they hold nothing that is not elsewhere.
//
// Invariants: a document's chunks change together; the methods are safe for
// concurrent use, by several processes as well.
package postgres
