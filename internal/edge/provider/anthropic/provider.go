package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"goclaw"
	"goclaw/internal/edge/provider"
)

const (
	defaultBaseURL     = "https://api.anthropic.com"
	defaultIdleTimeout = 120 * time.Second
)

// Options configures a Provider. The zero value talks to Anthropic without a
// key.
type Options struct {
	APIKey string

	// BaseURL is the server's address without the API version; a trailing
	// "/v1" is ignored. "" is Anthropic's.
	BaseURL string

	// HTTPClient is copied; its transport is shared and its redirects are
	// refused. nil is a client of the provider's own.
	HTTPClient *http.Client

	// IdleTimeout is the longest silence of the server, before or within a
	// reply. 0 is 120 seconds.
	IdleTimeout time.Duration

	// Name is the provider's name; "" is "anthropic".
	Name string
}

// Provider is a goclaw.Provider. It is safe for concurrent use.
type Provider struct {
	line     provider.Line
	client   *http.Client
	messages sdk.MessageService
	events   sync.Pool // of zero *sdk.MessageStreamEventUnion, 5 KB each
}

var (
	_ goclaw.Provider = (*Provider)(nil)
	_ goclaw.Encoder  = (*Provider)(nil)
)

// New returns a provider. Nothing is sent before the first Stream.
func New(opts Options) *Provider {
	base := strings.TrimSuffix(cmp.Or(opts.BaseURL, defaultBaseURL), "/")
	base = strings.TrimSuffix(base, "/v1")
	client := provider.Client(opts.HTTPClient)
	options := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
	}
	if opts.APIKey != "" {
		options = append(options, option.WithAPIKey(opts.APIKey))
	}
	return &Provider{
		line:     provider.Line{Provider: cmp.Or(opts.Name, "anthropic"), Key: opts.APIKey, Idle: cmp.Or(opts.IdleTimeout, defaultIdleTimeout)},
		client:   client,
		messages: sdk.NewMessageService(options...),
	}
}

// Name returns the configured name.
func (p *Provider) Name() string { return p.line.Provider }

// CloseIdleConnections closes connections that no Stream uses.
func (p *Provider) CloseIdleConnections() { p.client.CloseIdleConnections() }

// Stream implements goclaw.Provider.
func (p *Provider) Stream(ctx context.Context, req goclaw.ModelRequest, emit func(goclaw.Delta)) (goclaw.ModelReply, error) {
	if ctx.Err() != nil {
		return goclaw.ModelReply{}, p.line.Cancelled(ctx)
	}
	if emit == nil {
		emit = func(goclaw.Delta) {}
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	w := p.line.Watch(cancel)
	if err := p.begin(call, req, w); err != nil {
		return goclaw.ModelReply{}, p.failure(ctx, call, w, err)
	}
	// The SDK's own stream holds its largest event type several times over,
	// for as long as the model is silent. This one holds what was received.
	events := ssestream.NewStream[json.RawMessage](ssestream.NewDecoder(w.Response()), nil)
	defer func() { _ = events.Close() }()

	reply := newReply(p.line.Provider, emit)
	for events.Next() {
		done, err := p.take(reply, events.Current())
		if err != nil {
			return goclaw.ModelReply{}, p.failure(ctx, call, w, err)
		}
		if done {
			return reply.finish(), nil
		}
	}
	return goclaw.ModelReply{}, p.failure(ctx, call, w, events.Err())
}

// Encode implements goclaw.Encoder.
func (p *Provider) Encode(req goclaw.ModelRequest) ([]byte, error) {
	raw, err := p.params(req).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("%s: encode request: %w", p.line.Provider, err)
	}
	return provider.Streamed(raw), nil
}

// begin sends the request and returns once the reply has begun.
func (p *Provider) begin(ctx context.Context, req goclaw.ModelRequest, w *provider.Watch) error {
	return p.messages.NewStreaming(ctx, p.params(req), option.WithMiddleware(
		func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) { return w.Do(r, next) },
	)).Err()
}

// take folds one event into the reply and reports whether it was the last.
func (p *Provider) take(r *reply, raw json.RawMessage) (done bool, err error) {
	event, ok := p.events.Get().(*sdk.MessageStreamEventUnion)
	if !ok {
		event = new(sdk.MessageStreamEventUnion)
	}
	defer func() {
		*event = sdk.MessageStreamEventUnion{}
		p.events.Put(event)
	}()
	if err := event.UnmarshalJSON(raw); err != nil {
		return false, err
	}
	return r.add(event)
}
