package anthropic

import (
	"context"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"goclaw/internal/edge/provider"
)

// failure words what ended a call early. An error event is the SDK's own type.
func (p *Provider) failure(ctx, call context.Context, w *provider.Watch, err error) error {
	var event *sdk.Error
	var known error
	if errors.As(err, &event) {
		known = p.line.Event([]byte(event.RawJSON()))
	}
	return p.line.Failure(ctx, call, w, errors.Join(known, err))
}
