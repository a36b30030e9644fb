// Package recall holds what the indexes of memory share: how vectors are
// written, and how near two of them are.
//
// The indexes are in sqlite and postgres, with one suite for both in
// recalltest. What they hold is derived: of the notes of workspaces and of
// recorded turns. It may be thrown away at any time, and is when its form
// changes.
//
// It refuses to make terms or to rank: it finds the chunks that hold any of the
// terms it is given.
package recall
