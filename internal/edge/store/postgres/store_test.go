package postgres_test

import (
	"testing"

	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/storetest"
)

func TestStore(t *testing.T) {
	url := database(t)
	storetest.Run(t, func(t *testing.T) storetest.Store {
		if err := wipe(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		return open(t, url, postgres.Options{})
	})
}

// TestStoreWithoutGuards drops every unique index that could hide a double:
// the store must not need them.
func TestStoreWithoutGuards(t *testing.T) {
	url := database(t)
	dropGuards(t, url)
	storetest.Run(t, func(t *testing.T) storetest.Store {
		if err := wipe(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		return open(t, url, postgres.Options{})
	})
}

// TestAgree compares the store with the one in memory, its model.
func TestAgree(t *testing.T) {
	url := database(t)
	open := func() (storetest.Store, error) { return postgres.Open(t.Context(), url, postgres.Options{}) }
	storetest.Agree(t, func() (storetest.Pair, error) {
		if err := wipe(t.Context(), url); err != nil {
			return storetest.Pair{}, err
		}
		subject, err := open()
		return storetest.Pair{Model: memory.Open(), Subject: subject, Reopen: open, Remove: func() {}}, err
	})
}
