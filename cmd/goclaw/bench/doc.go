// Package bench measures goclaw from outside: it starts this very program as
// gateways in processes of their own, on homes in a temporary folder that is
// removed, against a model server in another process of its own.
//
// What can't be seen from outside, the disk and the assembling of a prompt, it
// measures in its own process with the gateway's parts, and says so.
//
// Every figure carries what it means and how it was measured, so that a report
// can be read without this code. Figures of other programs are never measured
// here; they are quoted, and labelled so.
//
// It refuses to touch the person's home, to call a real model, and to guess:
// what can't be measured on a system is left out with the reason.
//
// Invariants: no process, file or port outlives Run; the model server's memory
// and time are never counted as the gateway's; durability is that of the
// product (nothing is switched off to look faster).
package bench
