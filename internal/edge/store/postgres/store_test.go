package postgres_test

import (
	"testing"

	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		return open(t, database(t), postgres.Options{})
	})
}
