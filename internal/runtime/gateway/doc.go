// Package gateway routes people's messages to sessions, answers their slash
// commands, waits for outcomes, and delivers replies to channels.
//
// It refuses to execute anything: that is the Runner's. Invariants: a message
// is acknowledged only once it is durable; a reply leaves for a channel in the
// order of its session, is tried again with backoff, and is parked, never
// dropped, after too many failures.
package gateway
