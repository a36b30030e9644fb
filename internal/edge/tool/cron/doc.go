// Package cron gives the main agent the tool cron, by which it keeps what it
// does by the clock. It decides nothing about schedules: the Crontab does.
//
// Invariants: a worker is refused, whoever let it have the tool; a session
// keeps only jobs of its own agent whose session goclaw.Access lets it see, and
// has no other session spoken to or told. A call that runs again after a crash
// adds or fires nothing a second time.
package cron
