// Package pgtest runs a private PostgreSQL server for tests, benchmarks and
// crash checks: its own folder, a port of its own on the loopback interface,
// no password.
//
// It needs the server's binaries (Debian: the package postgresql) and refuses
// with ErrNoServer where there are none, so that a test can skip. The server
// dies with the process that started it, on Linux even if that is killed.
package pgtest
