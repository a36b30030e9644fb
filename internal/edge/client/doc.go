// Package client speaks the gateway's HTTP API, so that a command line has one
// path whether a gateway runs or not: New talks to a gateway over the network,
// InProcess calls the same handler in memory, without a socket.
//
// # What it refuses
//
// It keeps no state between calls, tries nothing again (a message whose fate
// is unknown is sent again by the caller, with the same goclaw.Inbound.Key),
// and follows no redirect, so that the token goes to the configured server
// only.
//
// # Invariants
//
// Errors are one line that says which call failed and why. They can be told
// apart: errors.Is with goclaw.ErrNotFound for a 404, goclaw.ErrEnded for a 409,
// ErrNoGateway when nothing could be reached, and *Error for every answer that
// the server gave.
//
// Every method returns soon after its context ends. The one goroutine that
// outlives a call is that of Notices; it ends with its context or the stream,
// and closes its channel last.
package client
