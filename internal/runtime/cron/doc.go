// Package cron turns schedules into runs: it decides about every due time of
// every job exactly once, whatever dies meanwhile and however many gateways
// there are, because the decision, the run and the next due time are one
// transaction of the store. It refuses to execute anything itself: what it
// starts are runs like any other.
package cron
