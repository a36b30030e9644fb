package storetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

// TestAgree compares the SQLite store with the one in memory, its model.
func TestAgree(t *testing.T) {
	dir := t.TempDir()
	files := 0
	storetest.Agree(t, func() (storetest.Pair, error) {
		files++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files))
		open := func() (storetest.Store, error) {
			return sqlite.Open(t.Context(), path, sqlite.Options{Sync: "OFF"})
		}
		subject, err := open()
		return storetest.Pair{
			Model: memory.Open(), Subject: subject, Reopen: open, Remove: func() { _ = os.Remove(path) },
		}, err
	})
}
