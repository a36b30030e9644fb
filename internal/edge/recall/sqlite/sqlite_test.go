package sqlite_test

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/recall/recalltest"
	"goclaw/internal/edge/recall/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	recalltest.Run(t, func(t *testing.T) (recalltest.Index, func() recalltest.Index) {
		path := filepath.Join(t.TempDir(), "memory.db")
		x := sqlite.New(path, nil)
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x, func() recalltest.Index {
			again := sqlite.New(path, nil)
			t.Cleanup(func() {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
			return again
		}
	})
}

func count(t *testing.T, path string) (goclaw.MemoryStatus, error) {
	t.Helper()
	x := sqlite.New(path, nil)
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	return x.Count(t.Context(), "main", "")
}

// The file is made when it is needed, for its owner alone; what another version
// made, or a disk has spoilt, is made anew; another program's file stays as it
// is.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	x := sqlite.New(path, nil)
	if _, err := os.Stat(path); err == nil {
		t.Error("it was made before it was needed")
	}
	if err := x.Put(t.Context(), goclaw.MemoryDoc{Agent: "main", Source: goclaw.MemoryFiles, Path: "a.md"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := count(t, path); err != nil || s.Files != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	query(t, path, "PRAGMA user_version = 77")
	if s, err := count(t, path); err != nil || s.Files != 0 {
		t.Errorf("of another version: %+v, %v", s, err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := count(t, path); err != nil || s.Files != 0 {
		t.Errorf("spoilt: %+v, %v", s, err)
	}
	foreign := filepath.Join(t.TempDir(), "theirs.db")
	query(t, foreign, "CREATE TABLE theirs (x)")
	if _, err := count(t, foreign); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Error(err)
	}
	if _, err := count(t, filepath.Join(t.TempDir(), "none", "memory.db")); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) && !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func query(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
