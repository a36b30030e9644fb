// Package redact takes secrets out of text that people, logs and files get to
// see: those that it was told of, and whatever has the form of a key.
//
// # What counts as a secret
//
// A known secret is replaced wherever it stands, whole or in part: servers that
// refuse a key like to repeat its beginning and its end. A part is eight
// characters or more from either end. What is shorter than that is not known
// as a secret, for it would blacken ordinary words. Of unknown text it takes
// out keys by the prefixes that their makers give them, bearer and basic
// credentials, passwords in web addresses, the gateway's cookies and the codes
// of its login links.
//
// # What it refuses
//
// It is for messages about the work, not for the work: transcripts and results
// are what a person and a model said, and stay as they are.
//
// # Invariants
//
// Text without a secret is returned as it is, without a copy. A Redactor may
// learn of secrets while it is used, by many goroutines. A nil one knows only
// the forms.
package redact
