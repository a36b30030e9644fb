package main

import (
	"context"
	"errors"

	"goclaw"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/redact"
	"goclaw/internal/edge/telemetry"
)

// addTelemetry settles where traces go.
func (s *settings) addTelemetry(c *cli, cfg config.Config) error {
	headers, err := cfg.TraceHeaders(s.secrets)
	if err != nil {
		return err
	}
	o := telemetry.Options{
		URL: cfg.Telemetry.OTLP, Content: cfg.Telemetry.Content, Headers: headers,
		Resource: map[string]string{"service.name": "goclaw", "service.version": version},
	}
	if s.traces, err = telemetry.FromEnv(c.Getenv, o); err != nil {
		return err
	}
	for _, value := range s.traces.Headers {
		s.hide.Add(value)
	}
	return nil
}

// discreet is a provider whose failures tell no secret: servers that refuse a
// key like to repeat it, and what a failure says is recorded and shown.
type discreet struct {
	goclaw.Provider
	hide *redact.Redactor
}

// Stream implements goclaw.Provider.
func (d discreet) Stream(ctx context.Context, req goclaw.ModelRequest, emit func(goclaw.Delta)) (goclaw.ModelReply, error) {
	reply, err := d.Provider.Stream(ctx, req, emit)
	var failed *goclaw.ProviderError
	if errors.As(err, &failed) {
		clean := *failed
		clean.Message, clean.Kind = d.hide.Text(failed.Message), d.hide.Text(failed.Kind)
		return reply, &clean
	}
	return reply, err
}

// Encode implements goclaw.Encoder.
func (d discreet) Encode(req goclaw.ModelRequest) ([]byte, error) {
	encoder, ok := d.Provider.(goclaw.Encoder)
	if !ok {
		return nil, errors.New("provider " + d.Name() + " can't tell what it sends")
	}
	return encoder.Encode(req)
}
