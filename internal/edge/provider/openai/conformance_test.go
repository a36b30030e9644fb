package openai_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) goclaw.Provider {
	p := openai.New(openai.Options{APIKey: "sk-secret", BaseURL: url + "/v1", IdleTimeout: time.Second})
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func TestConformance(t *testing.T) { providertest.RunConformance(t, open) }

func TestEncodeWithOptions(t *testing.T) {
	providertest.RunEncode(t, func(t *testing.T, url string) goclaw.Provider {
		p := openai.New(openai.Options{Name: "other", BaseURL: url, PromptCacheKey: true, LegacyMaxTokens: true})
		t.Cleanup(p.CloseIdleConnections)
		return p
	})
}
