package telemetry

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"goclaw"
)

// Spans are the trace of a run that has ended, the root first. Content adds
// what was said.
func Spans(log goclaw.RunLog, content bool) []*tracev1.Span {
	t := trace{run: log.Run, content: content, calls: map[string]goclaw.ToolCall{}, open: map[string]goclaw.Event{}}
	t.root()
	for i, e := range log.Events {
		t.event(e)
		if e.Kind == goclaw.EventWaiting && i+1 < len(log.Events) {
			t.span("wait", "wait "+string(e.Waiting.For), e.Seq, e.At, log.Events[i+1].At, text("goclaw.waits_for", string(e.Waiting.For)))
		}
	}
	t.close()
	return t.spans
}

// trace is one in the making.
type trace struct {
	run     goclaw.Run
	content bool
	spans   []*tracev1.Span

	calls map[string]goclaw.ToolCall // by id, as models asked for them
	open  map[string]goclaw.Event    // intents by their calls' ids, until the result
	last  goclaw.Millis
}

func nanos(m goclaw.Millis) uint64 { return uint64(m) * uint64(time.Millisecond) }

// root is the turn. It begins when the run was accepted: that is when someone
// began to wait for it.
func (t *trace) root() {
	r := t.run
	provider, name := model(r.Profile.Model)
	agent := r.Profile.Agent
	if r.Profile.Definition != "" {
		agent = r.Profile.Definition
	}
	s := &tracev1.Span{
		TraceId: traceID(r.ID), SpanId: spanID(r.ID, ""), Name: "invoke_agent " + agent, Kind: tracev1.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(r.CreatedAt), EndTimeUnixNano: nanos(max(r.FinishedAt, r.CreatedAt)),
		Attributes: append([]*common.KeyValue{
			text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.provider.name", provider), text("gen_ai.request.model", name),
			text("gen_ai.agent.id", r.Profile.Agent), text("gen_ai.agent.name", agent), text("gen_ai.conversation.id", r.Session.String()),
			text("goclaw.run.id", r.ID), text("goclaw.run.trigger", string(r.Trigger)), text("goclaw.run.status", string(r.State)),
			text("goclaw.run.root", r.Root), number("goclaw.run.depth", int64(r.Depth)),
		}, usage(r.Usage)...),
	}
	if r.State != goclaw.StateCompleted {
		s.Attributes = append(s.Attributes, text("error.type", string(r.State)))
		s.Status = &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR}
		if t.content {
			s.Status.Message = r.Error
		}
	}
	if r.Recovery != nil {
		s.Attributes = append(s.Attributes, number("goclaw.run.takeovers", int64(r.Recovery.Times)))
	}
	t.spans = append(t.spans, s)
	if r.Parent != "" {
		t.link(s, r.Parent, "spawned_by")
	}
	if r.StartedAt > r.CreatedAt {
		t.span("queue", "queue", -1, r.CreatedAt, r.StartedAt)
	}
}

// link leads from a span to the trace of another run.
func (t *trace) link(from *tracev1.Span, run, why string) {
	from.Links = append(from.Links, &tracev1.Span_Link{
		TraceId: traceID(run), SpanId: spanID(run, ""),
		Attributes: []*common.KeyValue{text("goclaw.link", why), text("goclaw.run.id", run)},
	})
}

// span adds a child of the root. Its id comes from what it is and the number of
// the event that tells of it.
func (t *trace) span(what, name string, seq int, from, to goclaw.Millis, attrs ...*common.KeyValue) *tracev1.Span {
	s := &tracev1.Span{
		TraceId: traceID(t.run.ID), SpanId: spanID(t.run.ID, what+"/"+strconv.Itoa(seq)), ParentSpanId: spanID(t.run.ID, ""),
		Name: name, Kind: tracev1.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(from), EndTimeUnixNano: nanos(max(from, to)), Attributes: attrs,
	}
	t.spans = append(t.spans, s)
	return s
}

// mark notes a moment on the root.
func (t *trace) mark(name string, at goclaw.Millis, attrs ...*common.KeyValue) {
	t.spans[0].Events = append(t.spans[0].Events, &tracev1.Span_Event{TimeUnixNano: nanos(at), Name: name, Attributes: attrs})
}

func (t *trace) event(e goclaw.Event) {
	t.last = max(t.last, e.At)
	switch {
	case e.Prompt != nil:
		for _, worker := range e.Prompt.Inbox {
			t.link(t.spans[0], worker, "announces")
		}
		if t.content {
			t.spans[0].Attributes = append(t.spans[0].Attributes, text("gen_ai.input.messages", said(e.Prompt.Input, "")))
		}
	case e.Model != nil:
		t.chat(e, *e.Model, spanID(t.run.ID, ""))
	case e.Intent != nil:
		for _, c := range e.Intent.Calls {
			t.open[c.CallID] = e
		}
	case e.Result != nil:
		t.tool(e)
	case e.Input != nil:
		t.mark("input", e.At, number("goclaw.input.items", int64(len(e.Input.Inbox))))
	case e.Resumed != nil:
		t.mark("resumed", e.At, number("goclaw.run.step", int64(e.Resumed.Step)))
	case e.Compact != nil:
		t.shortened("compact", e, e.Compact.Call, number("goclaw.context.before", e.Compact.Before), number("goclaw.context.after", e.Compact.After))
	case e.Handoff != nil:
		t.shortened("handoff", e, e.Handoff.Call, number("goclaw.context.before", e.Handoff.Before), number("goclaw.run.attempt", int64(e.Handoff.Attempt)))
	}
}

// chat is one model call, which ended when its reply was recorded.
func (t *trace) chat(e goclaw.Event, m goclaw.ModelEvent, parent []byte) {
	provider, asked := model(t.run.Profile.Model)
	attrs := append([]*common.KeyValue{
		text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", provider), text("gen_ai.request.model", asked),
		text("gen_ai.conversation.id", t.run.Session.String()), texts("gen_ai.response.finish_reasons", finish(m.Stop)),
	}, usage(m.Usage)...)
	if m.Model != "" {
		attrs = append(attrs, text("gen_ai.response.model", m.Model))
	}
	if m.MaxTokens > 0 {
		attrs = append(attrs, number("gen_ai.request.max_tokens", int64(m.MaxTokens)))
	}
	if m.Tries > 1 {
		attrs = append(attrs, number("goclaw.request.tries", int64(m.Tries)))
	}
	if t.content {
		attrs = append(attrs, text("gen_ai.output.messages", said(m.Message, m.Stop)))
	}
	s := t.span("chat", "chat "+asked, e.Seq, e.At-goclaw.Millis(m.TookMs), e.At, attrs...)
	s.Kind, s.ParentSpanId = tracev1.Span_SPAN_KIND_CLIENT, parent
	for _, c := range m.Message.Calls() {
		t.calls[c.ID] = c
	}
}

// tool is one tool call: from its intent to its result.
func (t *trace) tool(e goclaw.Event) {
	begun, known := t.open[e.Result.CallID]
	if !known {
		begun = e
	}
	delete(t.open, e.Result.CallID)
	s := t.call(e.Result.CallID, e.Result.Name, begun.At, e.At)
	if e.Result.IsError {
		s.Attributes = append(s.Attributes, text("error.type", "tool_error"))
		s.Status = &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR}
	}
	if t.content {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.result", e.Result.Content))
	}
	var spawned goclaw.SpawnReply
	if e.Result.Name == "sessions_spawn" && json.Unmarshal([]byte(e.Result.Content), &spawned) == nil && spawned.RunID != "" {
		t.link(s, spawned.RunID, "spawns")
	}
	for _, worker := range e.Result.Consume {
		t.link(s, worker, "announces")
	}
}

func (t *trace) call(id, name string, from, to goclaw.Millis) *tracev1.Span {
	s := t.span("tool/"+id, "execute_tool "+name, 0, from, to,
		text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", name), text("gen_ai.tool.type", "function"), text("gen_ai.tool.call.id", id))
	if c, ok := t.calls[id]; ok && t.content {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.arguments", c.Arguments))
	}
	return s
}

// shortened is a compaction or a hand-off, with the model call that it took.
func (t *trace) shortened(what string, e goclaw.Event, call *goclaw.ModelEvent, attrs ...*common.KeyValue) {
	from := e.At
	if call != nil {
		from -= goclaw.Millis(call.TookMs)
	}
	s := t.span(what, what, e.Seq, from, e.At, attrs...)
	if call != nil {
		t.chat(e, *call, s.SpanId)
	}
}

// close ends the calls whose outcome nobody recorded: the run ended before.
func (t *trace) close() {
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		begun := t.open[id]
		name := ""
		for _, c := range begun.Intent.Calls {
			if c.CallID == id {
				name = c.Name
			}
		}
		s := t.call(id, name, begun.At, max(t.last, t.run.FinishedAt))
		s.Attributes = append(s.Attributes, text("error.type", "unknown_outcome"))
		s.Status = &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR}
	}
}
