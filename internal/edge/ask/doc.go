// Package ask puts questions to a person, one line at a time: text with a
// default, yes or no, one of several, and text that is not shown. It works over
// ssh, in tmux and with a screen reader, and on a stream that is no terminal.
//
// It refuses to draw: it moves no cursor and clears nothing. It never repeats
// what was typed unseen.
//
// Invariants: a question that is interrupted (Ctrl-C, the end of its context)
// returns why, with the terminal as it was; the end of the input is ErrEnd.
package ask
