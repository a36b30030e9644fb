// Package openapi describes an HTTP surface: the descriptions stand beside its
// routes, in Go, and become an OpenAPI 3.1 document whose schemas are made
// from the Go types that the handlers read and write. The same declarations of
// parameters read a request's URL and headers, so that the document can't say
// what the surface doesn't do.
//
// # What it refuses
//
// Routes that lack a description, a path's variable that is not described or
// a description of one that is not there, two types of one name: Document
// returns an error, and a test of the surface calls it. Of a request: what is
// not declared, given twice, out of its bounds, no UTF-8, or holds a NUL.
//
// # Invariants
//
// It does no I/O and keeps no state. The document is the same, byte for byte,
// for the same routes.
package openapi
