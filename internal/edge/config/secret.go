package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
)

// Secret is a key or token. It never prints, logs or encodes as itself.
type Secret string

const hidden = "[secret]"

// Reveal returns the secret itself, for the request that needs it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret; an empty one stays empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON hides the secret from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Sealed is a secret as the file gives it: itself, or the name of one that is
// kept elsewhere. It hides the secret as Secret does.
type Sealed struct {
	Value Secret
	Name  string // {"secret": NAME}
}

// IsZero reports whether the file gives none.
func (s Sealed) IsZero() bool { return s == Sealed{} }

// MarshalJSON gives the form of the file, without a secret.
func (s Sealed) MarshalJSON() ([]byte, error) {
	if s.Name != "" {
		return json.Marshal(map[string]string{secretKey: s.Name})
	}
	return s.Value.MarshalJSON()
}

// secretKey is the key of the object that names a secret.
const secretKey = "secret"

// Secrets gives the secrets that the file names, and says where they are kept.
// nil knows none.
type Secrets func(name string) (value, place string, err error)

// open returns the secret itself, and where it comes from.
func (s Sealed) open(secrets Secrets) (value Secret, from string, err error) {
	switch {
	case s.Name == "" && s.Value != "":
		return s.Value, "the configuration file, in clear text (goclaw setup moves it out)", nil
	case s.Name == "":
		return "", "", nil
	case secrets == nil:
		return "", "", fmt.Errorf("the secret %q is needed, and none are kept here", s.Name)
	}
	text, place, err := secrets(s.Name)
	if err != nil {
		return "", "", err
	}
	return Secret(text), fmt.Sprintf("%s, secret %q", place, s.Name), nil
}

// Token is the token that clients must send, and what gives it: GOCLAW_TOKEN,
// else gateway.token; "" if neither does.
func (c Config) Token(getenv func(string) string, secrets Secrets) (token Secret, from string, err error) {
	if given := getenv("GOCLAW_TOKEN"); given != "" {
		return Secret(given), "GOCLAW_TOKEN", nil
	}
	if token, _, err = c.Gateway.Token.open(secrets); err != nil {
		return "", "", fmt.Errorf("gateway.token: %w", err)
	}
	if token == "" {
		return "", "", nil
	}
	return token, "gateway.token", nil
}

// TraceHeaders are the headers that traces are sent with.
func (c Config) TraceHeaders(secrets Secrets) (map[string]string, error) {
	var all map[string]string
	for name, sealed := range c.Telemetry.Headers {
		value, _, err := sealed.open(secrets)
		if err != nil {
			return nil, fmt.Errorf("telemetry.headers.%s: %w", name, err)
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value.Reveal()
	}
	return all, nil
}

// SecretNames are the secrets that the file names, with the keys that do.
func (c Config) SecretNames() map[string][]string {
	names := map[string][]string{}
	for _, r := range c.source.refs {
		if r.kind == "secret" {
			names[r.value] = append(names[r.value], strings.TrimSuffix(r.key, "."+secretKey))
		}
	}
	return names
}
