package openai

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"goclaw/internal/edge/provider"
)

// streamError is an error event that the SDK takes for a chunk.
type streamError struct{ body []byte }

func (e *streamError) Error() string { return "the stream carries an error" }

// failure words what ended a call early. An error event comes in two ways.
func (p *Provider) failure(ctx, call context.Context, w *provider.Watch, err error) error {
	var event *ssestream.StreamError
	var other *streamError
	var known error
	switch {
	case errors.As(err, &event):
		known = p.line.Event(event.Event.Data)
	case errors.As(err, &other):
		known = p.line.Event(other.body)
	}
	return p.line.Failure(ctx, call, w, errors.Join(known, err))
}
