// Package handoff passes a worker's state on to the next attempt of its run,
// when its context has become too long: what the worker is asked for, and what
// the runtime writes from the record if the worker gives nothing (spec section
// 8; seed 004: never pass the history, pass an artifact).
package handoff
