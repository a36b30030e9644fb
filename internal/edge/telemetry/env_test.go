package telemetry_test

import (
	"strings"
	"testing"

	"goclaw/internal/edge/telemetry"
)

func TestEnvironment(t *testing.T) {
	const base, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, tc := range []struct {
		name       string
		env        map[string]string
		configured string
		url, err   string
	}{
		{name: "nothing"},
		{name: "the base", env: map[string]string{base: "http://h:4318/"}, url: "http://h:4318/v1/traces"},
		{name: "its own", env: map[string]string{base: "http://h:4318", own: "https://t/x"}, url: "https://t/x"},
		{name: "the configuration first", env: map[string]string{base: "http://h:4318"}, configured: "http://c/v1/traces", url: "http://c/v1/traces"},
		{name: "switched off", env: map[string]string{base: "http://h:4318", "OTEL_SDK_DISABLED": "TRUE"}, configured: "http://c"},
		{name: "no traces", env: map[string]string{base: "http://h:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "gRPC", env: map[string]string{base: "http://h:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: "http/protobuf only"},
		{name: "no address", env: map[string]string{base: "h:4318"}, err: base + " must be a web address"},
		{name: "no address configured", configured: "ftp://h", err: "telemetry.otlp must be a web address"},
		{name: "no headers", env: map[string]string{base: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "hidden"}, err: "OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE"},
		{name: "two lines", env: map[string]string{base: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "a=hidden%0d%0ab"}, err: "OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE"},
	} {
		o, err := telemetry.FromEnv(func(name string) string { return tc.env[name] }, telemetry.Options{URL: tc.configured})
		switch {
		case tc.err == "" && err != nil, tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.err)
		case err != nil && strings.Contains(err.Error(), "hidden"):
			t.Errorf("%s: %v", tc.name, err)
		case err == nil && o.URL != tc.url:
			t.Errorf("%s: %q, want %q", tc.name, o.URL, tc.url)
		}
	}
	o, err := telemetry.FromEnv(func(name string) string {
		return map[string]string{
			base: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20k, b=c",
			"OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=x", "OTEL_SERVICE_NAME": "mine",
		}[name]
	}, telemetry.Options{Resource: map[string]string{"service.name": "goclaw", "service.version": "1"}})
	if err != nil || o.Headers["authorization"] != "Bearer k" || o.Headers["b"] != "c" ||
		o.Resource["service.name"] != "mine" || o.Resource["team"] != "x" || o.Resource["service.version"] != "1" {
		t.Errorf("%+v %v", o, err)
	}
}
