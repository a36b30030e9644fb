// Package page serves the gateway's web page: HTML, style sheets and ES
// modules that are embedded as they were written. Nothing is generated, and no
// Node builds or runs anything.
//
// The page is a client of the documented API like any other (see
// docs/decisions/0013): this package serves its files, and knows no run and no
// session.
//
// # What it refuses
//
// Everything but GET and HEAD; every path that is no file of its own. It asks
// nobody who they are: whoever mounts Handler does, and shows SignedOut to
// those that may not see the page. The files hold nothing secret.
//
// # Invariants
//
// No answer leads a browser to another host: the Content-Security-Policy
// allows only what the gateway itself serves, no inline script or style, no
// frame, no form to elsewhere. The files below assets/ stand under a hash of
// all of them, and may be kept for good; the page itself is asked for anew
// each time.
package page
