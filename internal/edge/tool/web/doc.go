// Package web provides the tools web_fetch and web_search.
//
// web_fetch gets one address and shows what is readable there: HTML as
// Markdown, other text as it is. web_search asks the one service that a person
// has configured; without one there is no such tool.
//
// Invariants:
//   - web_fetch reaches public addresses only. Where a name leads is judged when
//     the connection is made, by the very address that is dialled, for the first
//     request and for every redirect: what a name resolved to before or will
//     resolve to later counts for nothing. Hosts that a person named are the
//     exception.
//   - It sends no cookie, no credentials and no referrer, and takes no proxy from
//     the environment: a proxy would resolve names behind the guard's back.
//   - What comes from outside stands between marks that nobody outside can
//     know, without characters that can't be seen.
//   - Everything that is read is bounded: bytes before and after decompression,
//     time, redirects, characters shown. What was cut is said.
//   - Turning HTML into Markdown takes time that grows with its length alone,
//     and ends when the call does.
//   - A call changes nothing: both tools may run again after a crash.
//
// It refuses to run scripts, to send anything but GET requests to pages, to
// follow a redirect of a search service, and to keep what it has read.
package web
