package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"goclaw"
	"goclaw/internal/edge/provider"
)

const (
	defaultBaseURL     = "https://api.openai.com/v1"
	defaultIdleTimeout = 120 * time.Second
)

// Options configures a Provider. The zero value talks to OpenAI without a key.
type Options struct {
	APIKey string

	// BaseURL is the server's address with the API version (which may be left
	// out where there is no other path), such as
	// "http://localhost:11434/v1". "" is OpenAI's.
	BaseURL string

	// HTTPClient is copied; its transport is shared and its redirects are
	// refused. nil is a client of the provider's own.
	HTTPClient *http.Client

	// IdleTimeout is the longest silence of the server, before or within a
	// reply. 0 is 120 seconds.
	IdleTimeout time.Duration

	// Name is the provider's name; "" is "openai".
	Name string

	// PromptCacheKey sends a hash of ModelRequest.Session as prompt_cache_key,
	// so that one conversation meets one cache. Other servers than OpenAI's
	// may refuse the field.
	PromptCacheKey bool

	// LegacyMaxTokens sends max_tokens instead of max_completion_tokens, which
	// servers other than OpenAI's may not know.
	LegacyMaxTokens bool
}

// Provider is a goclaw.Provider. It is safe for concurrent use.
type Provider struct {
	line        provider.Line
	cacheKey    bool
	legacyMax   bool
	client      *http.Client
	completions sdk.ChatCompletionService
}

var (
	_ goclaw.Provider = (*Provider)(nil)
	_ goclaw.Encoder  = (*Provider)(nil)
)

// New returns a provider. Nothing is sent before the first Stream.
func New(opts Options) *Provider {
	client := provider.Client(opts.HTTPClient)
	options := []option.RequestOption{
		option.WithBaseURL(versioned(cmp.Or(opts.BaseURL, defaultBaseURL))),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
	}
	if opts.APIKey != "" {
		options = append(options, option.WithAPIKey(opts.APIKey))
	}
	return &Provider{
		line:        provider.Line{Provider: cmp.Or(opts.Name, "openai"), Key: opts.APIKey, Idle: cmp.Or(opts.IdleTimeout, defaultIdleTimeout)},
		cacheKey:    opts.PromptCacheKey,
		legacyMax:   opts.LegacyMaxTokens,
		client:      client,
		completions: sdk.NewChatCompletionService(options...),
	}
}

// versioned adds the API version to an address that is only a host, as people
// write it.
func versioned(base string) string {
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimSuffix(base, "/") + "/v1"
	}
	return base
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
	// The SDK's own stream holds its largest chunk type several times over, for
	// as long as the model is silent. This one holds what was received.
	chunks := ssestream.NewStream[json.RawMessage](ssestream.NewDecoder(w.Response()), nil)
	defer func() { _ = chunks.Close() }()

	reply := &reply{provider: p.line.Provider, emit: emit}
	for chunks.Next() {
		if err := reply.take(chunks.Current()); err != nil {
			return goclaw.ModelReply{}, p.failure(ctx, call, w, err)
		}
	}
	err := chunks.Err()
	if reply.complete(err == nil) {
		return reply.finish(), nil
	}
	return goclaw.ModelReply{}, p.failure(ctx, call, w, err)
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
	return p.completions.NewStreaming(ctx, p.params(req), option.WithMiddleware(
		func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) { return w.Do(r, next) },
	)).Err()
}
