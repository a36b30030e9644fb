// Package prompt is the assembler: it turns a profile, the tools and the
// workspace's files into an ordered list of sections, rendered last.
//
// It refuses to read files, to know the time or to decide who may use a tool.
// Invariants: a workspace file that the profile does not name is never in a
// section (an allowlist: unknown files are invisible); equal inputs give equal
// bytes; nothing that changes from turn to turn is in a section, it goes into
// the turn's user message (Envelope). Section order is most stable first, as
// spec section 3.2 says.
package prompt
