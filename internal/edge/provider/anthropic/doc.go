// Package anthropic is the provider for Anthropic's Messages API and servers
// that speak it, over the official SDK.
//
// One Stream is one HTTP request: the SDK's retries are off and redirects are
// refused, so that the caller alone decides about trying again and a key never
// follows a redirect. No key or address is read from the environment (proxies
// are, as everywhere in Go), and nothing is kept but idle connections.
//
// # Prompt bytes
//
// Tools, system and messages are sent in the order given, and schemas as they
// are (the encoder drops insignificant white space and writes <, > and & as
// escapes). At most four cache breakpoints are set: on the last tool, on the
// block that ends the stable system prompt, and on the last block of the last
// two user turns. With these removed, equal prefixes are equal bytes.
//
// Consecutive messages of one role become one, tool results come first in
// theirs, and empty text is never sent. A tool call whose arguments are no JSON
// object is sent back as {"_malformed": "..."}. A thinking block goes back to
// the provider that made it, unchanged: Part.Opaque holds its signature, or
// "redacted_thinking:" and the data of a redacted one.
//
// # Thinking
//
// From Claude 4.6 on, a level is sent as adaptive thinking with
// output_config.effort of the same name; older models and other vendors' get
// a budget of 2048, 8192 or 12000 tokens. "off" is what the model has for it:
// nothing up to 4.x, "disabled" for 5.x, "between_tools" for Sonnet from 5.5
// on, and the lowest effort for those that can't stop thinking.
//
// Without ModelRequest.MaxTokens, 16384 tokens are allowed for the answer, plus
// the budget, or 32000 in all with adaptive thinking. A given MaxTokens is a
// ceiling on everything: the budget shrinks to leave 1024 tokens for the
// answer, and below 1024 tokens of budget thinking is left out.
//
// Temperature is left out where it is an error: while thinking, and from
// Claude 4.7 on.
//
// # Answers in JSON
//
// From Claude 4.5 on, ModelRequest.Schema is sent as output_config.format, in
// the form that the API takes: objects closed, without numeric bounds, lengths
// and patterns. A schema that would mean something else in that form (objects
// that are open by the author's word, parts that refer to themselves, keywords
// that the API doesn't know, too many optional properties) is left out, and so
// is one beside a prefilled answer.
//
// # Errors
//
// A stream is complete when message_stop was seen. Ending before it is the
// kind "cut", silence for longer than the idle timeout "stall", no connection
// "network", bytes that make no sense "malformed", the end of the caller's
// context "cancelled"; a prompt that is too long is "context_length". All other
// kinds are the server's own.
package anthropic
