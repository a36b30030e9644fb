// Package goclaw holds the nouns of the GoClaw gateway and its three ports.
//
// A Session is an addressed conversation. A Run is the durable record of
// executing one turn in it; its Events are immutable and numbered, and its
// state is their fold. A finished subagent run leaves an InboxItem: its
// announcement to the session that asked. Provider, Tool and Channel are the
// ports through which the world is reached.
//
// The package imports the standard library only, performs no I/O and holds no
// state. All times are Unix milliseconds (type Millis) unless a name says
// otherwise. Values are plain data: safe to copy, not safe to mutate
// concurrently.
package goclaw
