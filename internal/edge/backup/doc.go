// Package backup writes what a GOCLAW_HOME holds into one archive, and makes a
// home of such an archive again.
//
// The archive is a zip file that any tool can read. Its last entry,
// manifest.json, names every other one with its size and SHA-256, and says what
// was left out and why: nothing is left out silently. Files of the home lie
// under home/, workspaces outside of it under workspaces/AGENT/.
//
// The package copies no database itself: the caller gives a consistent copy.
// It refuses to put secrets in clear into an archive unless it is told to, to
// overwrite an archive, and to follow links. A restore unpacks and checks
// everything beside the home before it touches anything: an archive that is cut
// or damaged, that holds what its manifest does not name, links, or paths that
// lead elsewhere is refused whole. It never deletes: what was there is moved
// aside, and only if that was asked for.
//
// Whether a gateway runs is for the caller to know: a backup may be written
// meanwhile, a restore may not.
package backup
