package anthropic

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
}

var _ goclaw.Provider = (*Provider)(nil)

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
	stream := p.messages.NewStreaming(call, p.params(req), option.WithMiddleware(
		func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) { return w.Do(r, next) },
	))
	defer func() { _ = stream.Close() }()

	reply := newReply(p.line.Provider, emit)
	for stream.Next() {
		done, err := reply.add(stream.Current())
		if err != nil {
			return goclaw.ModelReply{}, p.failure(ctx, call, w, err)
		}
		if done {
			return reply.finish(), nil
		}
	}
	return goclaw.ModelReply{}, p.failure(ctx, call, w, stream.Err())
}
