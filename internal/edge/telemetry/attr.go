package telemetry

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"

	"goclaw"
)

// traceID is the trace of a run.
func traceID(run string) []byte {
	sum := sha256.Sum256([]byte("goclaw trace\n" + run))
	return sum[:16]
}

// spanID is a span of a run's trace; "" is its root.
func spanID(run, part string) []byte {
	sum := sha256.Sum256([]byte("goclaw span\n" + run + "\n" + part))
	return sum[:8]
}

func text(name, value string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}}
}

func number(name string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}

func real(name string, value float64) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: value}}}
}

func texts(name string, values ...string) *common.KeyValue {
	list := &common.ArrayValue{}
	for _, v := range values {
		list.Values = append(list.Values, text("", v).Value)
	}
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}}
}

// usage are the attributes of what a call, or a whole run, used.
func usage(u goclaw.Usage) []*common.KeyValue {
	all := []*common.KeyValue{number("gen_ai.usage.input_tokens", u.Input), number("gen_ai.usage.output_tokens", u.Output)}
	if u.CacheRead > 0 {
		all = append(all, number("gen_ai.usage.cache_read.input_tokens", u.CacheRead))
	}
	if u.CacheWrite > 0 {
		all = append(all, number("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite))
	}
	if u.CostUSD != nil {
		all = append(all, real("goclaw.usage.cost_usd", *u.CostUSD))
	}
	return all
}

// model splits provider/model.
func model(full string) (provider, name string) {
	provider, name, ok := strings.Cut(full, "/")
	if !ok {
		return "", full
	}
	return provider, name
}

// finish is why a model stopped, in the words of the conventions.
func finish(s goclaw.StopReason) string {
	switch s {
	case goclaw.StopEnd, goclaw.StopSequence:
		return "stop"
	case goclaw.StopTools:
		return "tool_call"
	case goclaw.StopMaxTokens:
		return "length"
	case goclaw.StopRefusal:
		return "content_filter"
	}
	return string(s)
}

// said is a message as the conventions write it.
func said(m goclaw.Message, stop goclaw.StopReason) string {
	type part struct {
		Type      string          `json:"type"`
		Content   string          `json:"content,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Response  string          `json:"response,omitempty"`
	}
	type message struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}
	out := message{Role: string(m.Role), Parts: []part{}}
	if stop != "" {
		out.Finish = finish(stop)
	}
	for _, p := range m.Parts {
		switch {
		case p.Kind == goclaw.PartText:
			out.Parts = append(out.Parts, part{Type: "text", Content: p.Text})
		case p.Call != nil:
			args := json.RawMessage(p.Call.Arguments)
			if !json.Valid(args) {
				args = json.RawMessage(strconv.Quote(p.Call.Arguments))
			}
			if !json.Valid(args) { // Go quotes more than JSON knows
				args = nil
			}
			out.Parts = append(out.Parts, part{Type: "tool_call", ID: p.Call.ID, Name: p.Call.Name, Arguments: args})
		case p.Result != nil:
			out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: p.Result.CallID, Response: p.Result.Content})
		}
	}
	b, err := json.Marshal([]message{out})
	if err != nil {
		return "" // no such value can be made here
	}
	return string(b)
}
