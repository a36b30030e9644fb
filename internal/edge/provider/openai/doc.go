// Package openai is the provider for OpenAI's chat completions and for the many
// servers that speak them, over the official SDK.
//
// One Stream is one HTTP request: the SDK's retries are off and redirects are
// refused, so that the caller alone decides about trying again and a key never
// follows a redirect. No key or address is read from the environment (proxies
// are, as everywhere in Go), and nothing is kept but idle connections.
//
// # Prompt bytes
//
// The system blocks become the first message, joined by a blank line; tools and
// messages follow in the order given, and schemas as they are (the encoder
// drops insignificant white space and writes <, > and & as escapes). Equal
// prefixes are equal bytes. A tool result becomes a message of the role tool,
// a failed one with "Error: " in front. A tool call whose arguments are no JSON
// object is sent back as {"_malformed": "..."}: some servers parse them.
//
// What a reply shows of its reasoning (reasoning_content, or reasoning) becomes
// thinking parts for display; it is never sent back. A thinking level is sent
// as reasoning_effort of the same name, "off" as nothing. Without
// ModelRequest.MaxTokens the server's own limit holds. At most four stop
// sequences are sent, as the API demands.
//
// # Answers in JSON
//
// ModelRequest.Schema is sent as response_format json_schema if its root is an
// object: strict if the schema is one that the API takes as strict (every object
// closed, all its properties required, at most ten levels), else as a wish.
// Models from before structured outputs get none.
//
// Temperature and stop sequences are left out for models of OpenAI's that always
// reason (o1, o3, gpt-5 and their like), where they are errors.
//
// # Leniency
//
// Tool calls are collected by index, by id where servers leave the index out or
// repeat it, and get an id where servers give none. A reply with tool calls is
// StopTools even when its finish_reason is "stop". Reasons that nobody knows
// are StopEnd.
//
// # Errors
//
// A stream is complete at [DONE], or when it was closed in good order after a
// finish_reason, or broke off after both finish_reason and usage. Ending before
// is the kind "cut", silence for longer than the idle timeout "stall", no
// connection "network", bytes that make no sense "malformed", the end of the
// caller's context "cancelled"; a prompt that is too long is "context_length".
// All other kinds are the server's own. A used-up quota (insufficient_quota) is
// not worth a retry although its status is 429.
package openai
