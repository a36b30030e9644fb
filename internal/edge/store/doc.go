// Package store holds what the stores below it share: which requests they all
// refuse before they look at what is stored, and how content is addressed.
//
// It stores nothing and does no I/O. Invariant: what one store refuses here,
// every store refuses, with the same words.
package store
