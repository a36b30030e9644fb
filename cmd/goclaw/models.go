package main

import (
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// models is the registry of providers; it resolves what people and models call
// a model.
type models struct {
	providers map[string]goclaw.Provider
	aliases   map[string]string
	standard  string // used where nothing names a model

	unusable map[string]string // configured providers that can't be called, and why
}

// families are the names by which a bare model's provider is recognised.
var families = map[string][]string{
	"anthropic": {"claude"},
	"openai":    {"gpt-", "o1", "o3", "o4", "chatgpt"},
}

// shorthands are what Claude Code's files call Anthropic's models.
var shorthands = map[string]string{
	"sonnet": "anthropic/claude-sonnet-5-5", "opus": "anthropic/claude-opus-5-5", "haiku": "anthropic/claude-haiku-5-5",
}

// Resolve turns an id, an alias or "" into provider/model.
func (m models) Resolve(name string) (string, error) {
	if name == "" {
		name = m.standard
	}
	if full, ok := m.aliases[name]; ok {
		name = full
	}
	if full, ok := shorthands[strings.ToLower(name)]; ok && m.providers["anthropic"] != nil {
		name = full
	}
	provider, model, qualified := strings.Cut(name, "/")
	if !qualified {
		for p, prefixes := range families {
			if m.providers[p] != nil && slices.ContainsFunc(prefixes, func(f string) bool { return strings.HasPrefix(name, f) }) {
				return p + "/" + name, nil
			}
		}
		return "", fmt.Errorf("unknown model %q: write provider/model; providers here: %s%s", name, strings.Join(m.names(), ", "), m.aliasHint())
	}
	if why := m.unusable[provider]; why != "" && m.providers[provider] == nil {
		return "", fmt.Errorf("model %q can't be used: %s", name, why)
	}
	if m.providers[provider] == nil {
		return "", fmt.Errorf("unknown model %q: no provider %q is configured; providers here: %s", name, provider, strings.Join(m.names(), ", "))
	}
	if model == "" {
		return "", fmt.Errorf("unknown model %q: the name after the provider is missing", name)
	}
	if provider == "demo" && model != "offline" {
		return "", fmt.Errorf("unknown model %q: the demonstration provider has only demo/offline", name)
	}
	return name, nil
}

// Provider finds the provider of provider/model.
func (m models) Provider(name string) (goclaw.Provider, string, error) {
	full, err := m.Resolve(name)
	if err != nil {
		return nil, "", err
	}
	provider, model, _ := strings.Cut(full, "/")
	return m.providers[provider], model, nil
}

func (m models) names() []string {
	names := make([]string, 0, len(m.providers))
	for n := range m.providers {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (m models) aliasHint() string {
	if len(m.aliases) == 0 {
		return ""
	}
	names := make([]string, 0, len(m.aliases))
	for n := range m.aliases {
		names = append(names, n)
	}
	slices.Sort(names)
	return "; aliases: " + strings.Join(names, ", ")
}
