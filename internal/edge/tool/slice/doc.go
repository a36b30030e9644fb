// Package slice reads the files that a worker's slices name.
//
// It reads through tool.Reach for the worker's Access, so that what the worker
// may not see does not come into its prompt under any name. It decides nothing
// about tags, sizes or order; internal/core/slices does.
//
// It refuses rather than guesses: a missing file, a private one, one that is no
// text or too large ends the reading with an error that names it. Only what is
// wanted leniently (files that a text merely mentions) is left out instead.
package slice
