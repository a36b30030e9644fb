// Package trust remembers which workspaces the person trusts: only there are
// the skills and definitions used that come with the workspace.
//
// Trust is the person's word, given once by name, for the folder that the name
// leads to. It is kept in GOCLAW_HOME/trusted.json, mode 0600, which no agent's
// tools can reach. Workspaces inside GOCLAW_HOME need none: GoClaw laid them
// out, and nothing came with them.
//
// Invariants: what can't be read trusts nobody; the file is replaced as a
// whole; a change by another process is seen at the next question; an unchanged
// file is not read again.
package trust
