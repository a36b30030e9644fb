// Package providertest has a model server for tests, and the suite that every
// provider must pass.
//
// Server speaks the real wire formats of Anthropic's Messages API
// (POST /v1/messages) and OpenAI's chat completions (POST
// /v1/chat/completions), streaming and not, and lists one model at GET
// /v1/models. A Script decides what it answers from a neutral view of the
// request; an Answer can carry a Fault, such as a stream that is cut, stalls,
// or is split within a character. ParseScript reads scripts from JSON, for
// processes that can't pass a function.
//
// The server holds no model and counts tokens as four bytes each. It checks no
// key, binds to loopback only, and is not for production. Everything is safe
// for concurrent use; Close ends every request and leaves nothing behind.
//
// # Scripts in JSON
//
// A script is a list of rules, tried in order; the first that matches answers,
// and a request that none matches is refused with status 400:
//
//	[{"match":  {"role": "main", "hasToolResult": false, "contains": "weather"},
//	  "answer": {"calls": [{"name": "sessions_spawn", "arguments": {"task": "look"}}]}},
//	 {"match":  {"role": "worker"}, "answer": {"text": "Sunny. ({{task}})", "delayMs": 50}},
//	 {"answer": {"text": "All done."}}]
//
// In match, contains and not look at the newest user turn with its tool
// results, anywhere at the whole request; each is a text or a list of texts.
// role is worker when the first user message holds a subagent's envelope, else
// main. nth matches only the nth request that fits the rest of its rule (from
// 1). wire and model must be equal. In text and in arguments {{task}} stands
// for the worker's task (for main, the newest user text), {{result}} for the
// last tool result and {{n}} for the request's number.
//
// In answer, delayMs precedes the first byte and chunkDelayMs each event; stop
// is a goclaw.StopReason; usage, thinking, calls and fault are as in Answer.
package providertest
