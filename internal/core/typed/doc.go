// Package typed makes a worker a typed function: it checks the input before
// anything starts, fills it into texts and paths, says which form the answer
// must have, finds the answer in a reply, and words what goes back to the model
// when it isn't there.
//
// It does no I/O, keeps no state, and trusts nothing: replies, inputs and
// schemas may be anything. All of it is safe for concurrent use.
//
// # Where an answer ends
//
// Parse decides, not the model and not the server: what stands outside of the
// answer is dropped and counted, white space at its edges aside.
//
// JSON is looked for in this order: the whole reply; values in fences marked
// json; objects and arrays anywhere that don't lie within others. Of those in
// one place the last that fits the schema is the answer. It is given back in
// canonical form: compact, keys sorted, numbers as they were written.
//
// XML is looked for by its root tag alone, case and attributes as written; the
// last complete element is the answer, with its tags, byte for byte. Nothing
// inside needs to be well formed, because models write code there; but tags of
// the root's own name must pair, unless they stand in quotes or backticks of
// their own ("<plan>") or in a CDATA section. Where the closing tag is a stop
// sequence, the server has cut it off, and it is put back.
//
// A reply that was cut off at the limit of tokens, or by a refusal, is never
// complete, whatever it holds.
//
// # Findings
//
// With findings, a reply also has <findings>[…]</findings> outside of the
// answer, or a key "findings" in an answer that is a JSON object whose schema
// doesn't take that name itself. They are checked, and taken out of the answer.
package typed
