// Package artifact gives agents the tools by which runs leave files for one
// another: artifact_write, artifact_read, artifact_list.
//
// It decides nothing about who may read what: goclaw.Access does. Invariants:
// a written artifact is handed over with the call's result, so that the record
// has both or neither; writing the same again changes nothing; a run writes
// under its own name only; nothing is shown of an artifact that may not be
// read, but that the run exists.
package artifact
