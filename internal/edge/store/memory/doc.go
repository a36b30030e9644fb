// Package memory keeps GoClaw's sessions, runs and deliveries in memory: the
// store for tests and for runs that nobody wants to keep. It promises what
// every store does (see storetest) except durability: when the process ends,
// all is gone. It is the model that other stores are compared with, and what
// an exhaustive walk through the protocol forks: Clone and Fingerprint are for
// that.
//
// It refuses to read the clock: all times come with the requests. What it
// returns is never shared with what it holds. A call is one critical section
// under one lock, and checks everything before it changes anything.
package memory
