package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"goclaw"
	"goclaw/internal/edge/provider"
)

// embedRetries is how often the SDK sends a request again that may succeed
// later, with the server's delay.
const embedRetries = 2

// Embedder makes vectors of texts by /embeddings. It is safe for concurrent
// use.
type Embedder struct {
	line    provider.Line
	model   string
	service sdk.EmbeddingService
}

// NewEmbedder returns an Embedder for one of the provider's models. Nothing is
// sent before the first Embed.
func NewEmbedder(opts Options, model string) *Embedder {
	options := []option.RequestOption{
		option.WithBaseURL(versioned(cmp.Or(opts.BaseURL, defaultBaseURL))),
		option.WithHTTPClient(provider.Client(opts.HTTPClient)),
		option.WithMaxRetries(embedRetries),
		option.WithRequestTimeout(cmp.Or(opts.IdleTimeout, time.Minute)),
	}
	if opts.APIKey != "" {
		options = append(options, option.WithAPIKey(opts.APIKey))
	}
	return &Embedder{
		line:    provider.Line{Provider: cmp.Or(opts.Name, "openai"), Key: opts.APIKey, Idle: cmp.Or(opts.IdleTimeout, time.Minute)},
		model:   model,
		service: sdk.NewEmbeddingService(options...),
	}
}

// Model is provider/model.
func (e *Embedder) Model() string { return e.line.Provider + "/" + e.model }

// Embed returns a vector for each text, in their order. All have one length.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	res, err := e.service.New(ctx, sdk.EmbeddingNewParams{
		Model: e.model, Input: sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: sdk.EmbeddingNewParamsEncodingFormatFloat,
	})
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	vectors := make([][]float32, len(texts))
	for _, d := range res.Data {
		if d.Index < 0 || int(d.Index) >= len(vectors) || len(d.Embedding) == 0 {
			return nil, e.malformed("the answer holds a vector for no text, or an empty one")
		}
		v := make([]float32, len(d.Embedding))
		for i, x := range d.Embedding {
			v[i] = float32(x)
		}
		vectors[d.Index] = v
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, e.malformed(fmt.Sprintf("the answer holds vectors for %d of %d texts, or of different lengths", len(res.Data), len(texts)))
		}
	}
	return vectors, nil
}

func (e *Embedder) malformed(what string) error {
	return &goclaw.ProviderError{Provider: e.line.Provider, Kind: "malformed", Message: what}
}

// failure words what went wrong, without the key and without what was sent.
func (e *Embedder) failure(ctx context.Context, err error) error {
	var refused *sdk.Error
	var syntax *json.SyntaxError
	switch {
	case ctx.Err() != nil:
		return e.line.Cancelled(ctx)
	case errors.As(err, &refused):
		return e.line.Refused(refused.Response)
	case errors.As(err, &syntax):
		return e.malformed("the answer is not JSON")
	}
	return e.line.Unreachable(err)
}
