package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// FromEnv reads OpenTelemetry's own variables into o, whose fields go before
// them. URL stays "" where nothing is to be sent.
func FromEnv(getenv func(string) string, o Options) (Options, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		o.URL = ""
		return o, nil
	}
	first := func(name string) (value, from string) {
		for _, from := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := getenv(from); value != "" {
				return value, from
			}
		}
		return "", ""
	}
	from := "telemetry.otlp"
	if o.URL == "" {
		o.URL, from = first("ENDPOINT")
		if from == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			o.URL = strings.TrimRight(o.URL, "/") + "/v1/traces"
		}
		if protocol, named := first("PROTOCOL"); o.URL != "" && protocol != "" && protocol != "http/protobuf" {
			return o, fmt.Errorf("%s is %q, but traces are sent by http/protobuf only; name the collector's HTTP address (port 4318 mostly)", named, protocol)
		}
	}
	if o.URL == "" {
		return o, nil
	}
	if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, fmt.Errorf("%s must be a web address such as http://localhost:4318", from)
	}
	if o.Headers == nil {
		text, named := first("HEADERS")
		var err error
		if o.Headers, err = pairs(text); err != nil {
			return o, fmt.Errorf("%s %w", named, err) // without the text: it holds keys
		}
	}
	given, err := pairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return o, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES %w", err)
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		given["service.name"] = name
	}
	for name, value := range o.Resource {
		if given[name] == "" {
			given[name] = value
		}
	}
	o.Resource = given
	return o, nil
}

// pairs reads name=value,name=value with percent-encoded values.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return nil, errors.New("must be NAME=VALUE pairs with commas between them, values percent-encoded")
		}
		all[name] = value
	}
	return all, nil
}
