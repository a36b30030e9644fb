// Package schedule says when something is due, and decides what to do about a
// due time: fire, skip, or wait.
//
// A schedule is a moment, equal steps of elapsed time, or a cron expression in
// a time zone. The fields of an expression are matched by gronx on naive local
// times, that is on what a clock on the wall shows; what becomes of them when
// the clock is changed is decided here:
//
//   - An expression that allows every hour follows elapsed time: it is due
//     whenever the clock shows a matching time, so in both of autumn's repeated
//     hours.
//   - Any other names its hours: it is due once for each matching local time. Of
//     one that comes twice the first counts.
//   - A local time that is missing is due at the first instant after the gap.
//     An expression that follows elapsed time passes over hours that are missing
//     as a whole.
//   - Due times that fall on one instant are one.
//
// It refuses expressions that can never be due, years, and whatever the
// usual readers of crontabs would silently understand in different ways; every
// refusal says which field is wrong and how to mend it.
//
// It holds no clock: every function is told what time it is. Invariants: Next
// is later than what it is asked after; Decide never gives a next due time that
// is not after the one that it decides about.
package schedule
