package memory_test

import (
	"testing"

	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		s := memory.Open()
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
