// Package web is the gateway's HTTP surface: health checks, an
// OpenAI-compatible API under /v1, and the REST and server-sent-events API
// under /api that GoClaw's own command line speaks. Handlers translate and
// decide nothing: all work is the Backend's.
//
// Every route is described where it is declared (package openapi): from the
// descriptions the document at /api/openapi.json is made, and against them
// parameters and the bodies under /api are held before a handler sees them.
//
// # What it refuses
//
// Whatever lacks the token (all but /healthz and /readyz); a Host that is
// neither loopback nor configured, which is what DNS rebinding looks like; an
// Origin that is not the host that was asked (there is no CORS); bodies over
// 4 MiB; JSON fields and query parameters that it does not know, by name. Of
// /v1 it refuses what it would have to ignore although the caller relies on
// it: images, several choices, log probabilities.
//
// # The page
//
// Options.Page is for browsers that are signed in: by a cookie, which they get
// for a one-time code, which the holder of the token gets from POST
// /api/login-links. The cookie opens the API too, but what changes anything
// must carry X-GoClaw-Page: 1 and come from the page's own origin, and it makes
// no login links. keys.go says what the cookie is and when it ends.
//
// # OpenAI's API
//
// Chat completions and responses are read into one question, and what becomes
// of it is worded by either (wording). The session is that of the header
// X-GoClaw-Session, else that of the field user, else that of the response
// before, else a new one for this request alone; the answer names it in the same
// header. The session holds the history, so only the user messages that follow
// the last assistant message are taken as new. When the session is new to the
// gateway although the request carries earlier messages (system and developer
// ones included), these are put before the new text, as text.
//
// A session that is known holds them already, and they are not read again.
//
// A run outlives the request: a client that goes away does not cancel it (POST
// /api/runs/{id}/cancel does). Idempotency-Key makes a retried request find
// the run of the first. With X-GoClaw-Wait: true the answer takes until the
// workers that the run started are announced and answered, and these answers
// follow the first one, separated by a blank line. What tunes a model
// (temperature, max_tokens and the like) is accepted without effect: the
// agent's own settings hold.
//
// A stream carries the text of every model call of the turn, a plain answer
// only the last one's. Text that was streamed can't be taken back: when a
// model call breaks off and is made again, its new text follows after a blank
// line unless it begins like the old one.
//
// Tools of the caller are offered to the run. While it waits for their results
// the answers are out: the ids of calls and responses lead back to the run
// (callid.go), and what a request is answered with is read from the run's record
// (record.go), so nothing is stored for it here. A question that answers the
// calls of a run that waits lets this run go on; any other is a new turn, with
// the results as text.
//
// # Invariants
//
// Every error under /v1 has OpenAI's shape, every other one is
// application/problem+json. A stream that can't be completed ends with an
// error event or a cut connection, never like a complete one. A slow or
// stalled client holds nothing but its own request, and that for writeTimeout
// at most: a stream's events wait in the Backend's bounded queue, not here. No
// handler leaves a goroutine behind.
//
// Timeouts for reading a request's header and ending idle connections are the
// http.Server's job; its WriteTimeout must be 0, for there are long answers.
// Its BaseContext ends streams at shutdown.
package web
