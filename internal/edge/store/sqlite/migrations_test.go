package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// upTo are migrations of which the first is the real one, and those that are
// given come after it.
func upTo(t *testing.T, more ...string) fstest.MapFS {
	t.Helper()
	first, err := migrationFiles.ReadFile("migrations/0001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	set := fstest.MapFS{"0001_init.sql": {Data: first}}
	for i, text := range more {
		set[fmt.Sprintf("%04d_more.sql", i+2)] = &fstest.MapFile{Data: []byte(text)}
	}
	return set
}

func openWith(t *testing.T, path string, set fstest.MapFS) error {
	t.Helper()
	s, err := open(t.Context(), path, Options{}, set)
	if err != nil {
		return err
	}
	return s.Close()
}

// TestMigrationFails leaves the database as it was, also what migrations before
// the one that fails have done.
func TestMigrationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s, err := open(t.Context(), path, Options{}, upTo(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := acceptLong(t.Context(), s, "old"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fine, broken := "CREATE TABLE extra (n INTEGER); DELETE FROM runs", "CREATE TABLE more (n INTEGER); INSERT INTO nothing VALUES (1)"
	err = openWith(t, path, upTo(t, fine, broken))
	if err == nil || !strings.Contains(err.Error(), "migration 0003_more.sql failed; nothing was changed") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got error %v", err)
	}
	s, err = open(t.Context(), path, Options{}, upTo(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), "old"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if version, err := Check(t.Context(), path+".before-0002"); err != nil || version != 1 {
		t.Errorf("copy: version %d, error %v", version, err)
	}
	if err := openWith(t, path, upTo(t, fine)); err != nil {
		t.Error(err)
	}
	if err := openWith(t, path, upTo(t)); err == nil || !strings.Contains(err.Error(), "has schema version 2, but this goclaw knows only up to 1") {
		t.Errorf("an older goclaw: error %v", err)
	}
}

// TestCopiesArePruned keeps the copies of the last few migrations.
func TestCopiesArePruned(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "goclaw.db")
	var more []string
	for i := range 6 {
		if err := openWith(t, path, upTo(t, more...)); err != nil {
			t.Fatal(err)
		}
		more = append(more, fmt.Sprintf("CREATE TABLE extra%d (n INTEGER)", i))
	}
	found, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[%[1]s.before-0004 %[1]s.before-0005 %[1]s.before-0006]", path)
	if got := fmt.Sprint(found); got != want {
		t.Errorf("copies %s, want %s", got, want)
	}
}
