package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
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

// What a disk has spoilt behind the first pages shows only when it is read: it
// is said, and the next who asks finds an index that is made anew.
func TestDamagedWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	x := sqlite.New(path, nil)
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 200 {
		d := goclaw.MemoryDoc{Agent: "main", Source: goclaw.MemoryFiles, Path: fmt.Sprintf("%d.md", i)}
		c := goclaw.MemoryChunk{ID: d.Path, Text: strings.Repeat("text ", 200), Terms: "boat sea", TitleTerms: "titl"}
		if err := x.Put(t.Context(), d, []goclaw.MemoryChunk{c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const pages = 16 * 4096 // the schema, and the roots of the tables
	copy(data[pages:], strings.Repeat("\xaa", len(data)-pages))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	lookup := goclaw.MemoryLookup{Agent: "main", Terms: []string{"boat"}, Limit: 500}
	if found, err := x.Match(t.Context(), lookup); !errors.Is(err, goclaw.ErrMemoryDamaged) {
		t.Fatalf("%d chunks, %v", len(found), err)
	}
	if s, err := x.Count(t.Context(), "main", ""); err != nil || s.Files != 0 {
		t.Errorf("%+v, %v", s, err)
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
