// Package budget decides what a model call may spend before it is sent: it
// prices tokens, bounds the tokens of a request, knows how many a model takes,
// and fits a call into what a limit leaves.
//
// It does no I/O beyond reading its embedded lists, and keeps no state.
// It refuses to guess: a model without a price has none, and a limit in USD
// then refuses the call.
//
// Invariants: a call that Plan lets through stays within the run's own limits
// even if it uses all that it may; what Fit returns fits; no usage within the
// tokens given to Price.Most costs more than that.
package budget
