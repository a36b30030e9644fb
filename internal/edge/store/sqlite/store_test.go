package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

func open(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		return open(t, filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{})
	})
}

func TestCloseWritesTheLogBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s := open(t, path, sqlite.Options{})
	_, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: goclaw.Run{
		ID: "one", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the write-ahead log is still there (%v)", err)
	}
}
