// Package recall measures how well memory is found: on notes of public text and
// questions about them in everyday words that avoid the words of the notes,
// beside plain full text search by SQLite's FTS5.
//
// The notes are entries of the Jargon File 4.4.7, which is in the public domain.
// The questions were written for this benchmark. Half of them are for tuning,
// and only the other half is reported.
//
// It refuses to touch anything but a folder of its own.
package recall
