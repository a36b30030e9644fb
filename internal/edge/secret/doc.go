// Package secret keeps the person's keys: by name, in the system's keyring or,
// where there is none, in an age file.
//
// The age file is secrets.age in the state folder. It is sealed for the
// identity in secrets.key beside it, which is readable by its owner only, or
// with a passphrase, when one was given as it was made. Which secret is kept
// where stands in secrets.json, without any value, so that listing unlocks
// nothing.
//
// It refuses to keep a secret in plain text, to fall back from a keyring that
// fails to the file by itself (the caller asks the person), and to give a
// secret to anything but its caller: no error and no file name holds a value.
//
// Invariants: a secret is on record in one place only; a file is there whole
// or not at all; what can't be opened is left as it is. A keyring is waited for
// with a limit: the call of one that never answers is given up on, and ends
// with the process.
package secret
