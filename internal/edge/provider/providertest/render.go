package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"goclaw"
)

// rendered is an answer in the words of a wire.
type rendered struct {
	whole  object // without streaming
	stream []event
	last   []event // what ends the stream
	wire   string
}

// event is one server-sent event; data is JSON, or a text that is sent as it is.
type event struct {
	name string
	data any
}

// bytes frames e.
func (e event) bytes() []byte {
	var b bytes.Buffer
	if e.name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.name)
	}
	data, ok := e.data.(string)
	if !ok {
		raw, err := json.Marshal(e.data)
		if err != nil {
			panic(fmt.Sprintf("model server: encode event: %v", err)) // plain maps always encode
		}
		data = string(raw)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	return b.Bytes()
}

// events returns the framed stream with the faults that concern events.
func (r rendered) events(f Fault) [][]byte {
	all := slices.Concat(r.stream, r.last)
	if f.DuplicateDone {
		all = append(all, r.last[len(r.last)-1])
	}
	if f.ErrorEventAfter != nil {
		fail := event{data: errorBody(r.wire, f.eventKind(), "injected fault")}
		if r.wire == WireAnthropic {
			fail.name = "error"
		}
		all = append(all[:min(len(all), *f.ErrorEventAfter)], fail)
	}
	out := make([][]byte, len(all))
	for i, e := range all {
		out[i] = e.bytes()
	}
	return out
}

func (f Fault) eventKind() string {
	if f.ErrorKind != "" {
		return f.ErrorKind
	}
	return "overloaded_error"
}

// prepared fills in what the script left open.
func (a Answer) prepared(n int) Answer {
	a.Calls = slices.Clone(a.Calls)
	for i := range a.Calls {
		c := &a.Calls[i]
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", n, i+1)
		}
		if a.Fault.MalformedArguments {
			c.Arguments = BrokenArguments
		}
	}
	return a
}

// anthropicStop is the inverse of the provider's mapping.
func anthropicStop(s goclaw.StopReason) string {
	switch s {
	case goclaw.StopTools:
		return "tool_use"
	case goclaw.StopMaxTokens, goclaw.StopSequence, goclaw.StopRefusal:
		return string(s)
	}
	return "end_turn"
}

func anthropicWire(r *Request, a Answer, u goclaw.Usage) rendered {
	usage := object{
		"input_tokens":                u.Input - u.CacheRead - u.CacheWrite,
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
		"output_tokens":               1,
	}
	final := object{"output_tokens": u.Output}
	message := func(content []object, stop any, usage object) object {
		m := object{
			"id": fmt.Sprintf("msg_%d", r.N), "type": "message", "role": "assistant", "model": r.Model,
			"content": content, "stop_reason": stop, "stop_sequence": nil,
		}
		if !a.Fault.NoUsage {
			m["usage"] = usage
		}
		return m
	}
	stop := anthropicStop(a.stop())
	out := rendered{wire: WireAnthropic}
	add := func(kind string, fields object) {
		fields["type"] = kind
		out.stream = append(out.stream, event{name: kind, data: fields})
	}
	add("message_start", object{"message": message([]object{}, nil, usage)})
	add("ping", object{})
	blocks := a.anthropicBlocks()
	content := make([]object, len(blocks))
	for i, b := range blocks {
		add("content_block_start", object{"index": i, "content_block": b.start})
		for _, d := range b.deltas {
			add("content_block_delta", object{"index": i, "delta": d})
		}
		add("content_block_stop", object{"index": i})
		content[i] = b.whole
	}
	end := object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}}
	if !a.Fault.NoUsage {
		end["usage"] = final
	}
	out.last = []event{{"message_delta", end}, {"message_stop", object{"type": "message_stop"}}}
	whole := map[string]any{}
	for k, v := range usage {
		whole[k] = v
	}
	whole["output_tokens"] = u.Output
	out.whole = message(content, stop, whole)
	return out
}

// wireContent is a content block in both forms.
type wireContent struct {
	start  object
	deltas []object
	whole  object
}

func (a Answer) anthropicBlocks() []wireContent {
	var out []wireContent
	if a.Thinking != "" || a.Signature != "" {
		b := wireContent{
			start: object{"type": "thinking", "thinking": "", "signature": ""},
			whole: object{"type": "thinking", "thinking": a.Thinking, "signature": a.Signature},
		}
		for _, s := range a.pieces(a.Thinking) {
			b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": s})
		}
		b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": a.Signature})
		out = append(out, b)
	}
	if a.Redacted != "" {
		whole := object{"type": "redacted_thinking", "data": a.Redacted}
		out = append(out, wireContent{start: whole, whole: whole})
	}
	if a.Text != "" {
		b := wireContent{start: object{"type": "text", "text": ""}, whole: object{"type": "text", "text": a.Text}}
		for _, s := range a.pieces(a.Text) {
			b.deltas = append(b.deltas, object{"type": "text_delta", "text": s})
		}
		out = append(out, b)
	}
	for _, c := range a.Calls {
		b := wireContent{
			start:  object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
			deltas: []object{{"type": "input_json_delta", "partial_json": ""}},
		}
		for _, s := range a.pieces(c.Arguments) {
			b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": s})
		}
		var input any = object{}
		if json.Valid([]byte(c.Arguments)) {
			input = json.RawMessage(c.Arguments)
		}
		b.whole = object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input}
		out = append(out, b)
	}
	return out
}

func openAIStop(s goclaw.StopReason) string {
	switch s {
	case goclaw.StopTools:
		return "tool_calls"
	case goclaw.StopMaxTokens:
		return "length"
	case goclaw.StopRefusal:
		return "content_filter"
	}
	return "stop"
}

func openAIWire(r *Request, a Answer, u goclaw.Usage) rendered {
	base := func(kind string, choices []object) object {
		return object{
			"id": fmt.Sprintf("chatcmpl-%d", r.N), "object": kind, "created": 0, "model": r.Model,
			"choices": choices,
		}
	}
	out := rendered{wire: WireOpenAI}
	add := func(delta object, stop any) {
		choice := object{"index": 0, "delta": delta, "finish_reason": stop}
		out.stream = append(out.stream, event{data: base("chat.completion.chunk", []object{choice})})
	}
	stop := openAIStop(a.stop())
	add(object{"role": "assistant", "content": ""}, nil)
	for _, s := range a.pieces(a.Thinking) {
		add(object{"reasoning_content": s}, nil)
	}
	for _, s := range a.pieces(a.Text) {
		add(object{"content": s}, nil)
	}
	message := object{"role": "assistant", "content": nil}
	if a.Text != "" {
		message["content"] = a.Text
	}
	if a.Thinking != "" {
		message["reasoning_content"] = a.Thinking
	}
	var calls []object
	for i, c := range a.Calls {
		add(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, s := range a.pieces(c.Arguments) {
			add(object{"tool_calls": []object{{"index": i, "function": object{"arguments": s}}}}, nil)
		}
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	add(object{}, stop)

	usage := object{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
	}
	out.whole = base("chat.completion", []object{{"index": 0, "message": message, "finish_reason": stop}})
	if !a.Fault.NoUsage {
		out.whole["usage"] = usage
		last := base("chat.completion.chunk", []object{})
		last["usage"] = usage
		out.stream = append(out.stream, event{data: last})
	}
	out.last = []event{{data: "[DONE]"}}
	return out
}
