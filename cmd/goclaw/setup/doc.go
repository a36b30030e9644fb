// Package setup is the wizard behind goclaw setup: it finds out which model is
// to answer, with whose key, and where the agent lives, tries the model, and
// says what is to be changed. The command does the changes.
//
// It refuses to change anything itself and to guess in a script: without a
// person to ask, what is not given and has no default is an error.
//
// Invariants: a Plan is complete, and its model was tried or somebody insisted;
// no text that is shown holds a key.
package setup
