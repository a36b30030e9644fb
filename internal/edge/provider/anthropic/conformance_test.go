package anthropic_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) goclaw.Provider {
	p := anthropic.New(anthropic.Options{APIKey: "sk-ant-secret", BaseURL: url, IdleTimeout: time.Second})
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func TestConformance(t *testing.T) { providertest.RunConformance(t, open) }
