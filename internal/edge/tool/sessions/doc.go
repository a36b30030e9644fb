// Package sessions gives agents the tools that speak of runs and sessions:
// sessions_spawn, subagents, sessions_list, sessions_history, session_status.
//
// It decides nothing: the Spawner checks and accepts. Invariants: an agent
// sees and controls only runs that its own session asked for, and is listed and
// reads only sessions that goclaw.Access lets it see. A search covers a
// session's whole record, not only what its model still sees. A wait
// never polls and blocks nothing: it suspends its call, and a result that it
// tells is taken with it, so that it is told once.
package sessions
