// Package metrics counts what the gateway does, for Prometheus.
//
// What it counts comes from the notices that the engine publishes anyway, and
// from the HTTP surface; what is the case at the moment of a scrape comes from
// the gateway's status. Nothing in the engine knows of it. Counters begin at
// zero with each process, as Prometheus expects; the record, and goclaw usage,
// keep the sums.
//
// # What it refuses
//
// Labels without bound: tools that nobody registered count as "other", so do
// models after the first maxModels, and routes are patterns. No label holds a
// session, a run, or anything that a person or a model wrote.
//
// # Invariants
//
// Observe never blocks on anything but a short lock, and keeps nothing of a
// run that has ended. All names begin with goclaw_, but for those of Go and of
// the process. The registry is its own.
package metrics
