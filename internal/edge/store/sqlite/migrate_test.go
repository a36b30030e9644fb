package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// oldDatabase makes a database as the first released schema has it, with a run
// and its event.
func oldDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"PRAGMA journal_mode = WAL",
		string(readFile(t, filepath.Join("migrations", "0001_init.sql"))),
		"PRAGMA user_version = 1",
		`INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns) VALUES ('agent:a:main', 'a', 0, 1, 1, 1)`,
		`INSERT INTO runs (id, session_key, trigger, requester_key, parent, depth, root, lane, agent, label, task, context, profile, cleanup, announce,
			created_at, idempotent, head) VALUES ('old-run', 'agent:a:main', 'user', '', '', 0, 'old-run', 'agent:a:main', 'a', '', 'old', '', '{}', '', '', 1, '', 1)`,
		`INSERT INTO events VALUES ('old-run', 0, 'end', 1, '{"seq":0,"kind":"end","at":1}')`,
		`INSERT INTO calls VALUES ('old-run', 0, 'old-run', 'a', '', 'p/m', '2026-01-02', 1, 5, 1, 0, 0, NULL, 9)`,
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// hasOld fails unless the store holds what oldDatabase wrote, and can keep what
// it could not.
func hasOld(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := t.Context()
	run, err := s.Run(ctx, "old-run")
	if err != nil || run.Task != "old" || run.State != goclaw.StateQueued {
		t.Fatalf("run %+v, error %v", run, err)
	}
	events, err := s.Events(ctx, "old-run")
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, error %v", len(events), err)
	}
	usage, err := s.Usage(ctx, goclaw.UsageQuery{By: []string{"trigger"}})
	if err != nil || len(usage) != 1 || usage[0].Trigger != goclaw.TriggerUser || usage[0].Usage.Input != 5 {
		t.Fatalf("usage %+v, error %v", usage, err)
	}
	j, err := s.PutCronJob(ctx, goclaw.CronJob{ID: "j", Agent: "a"})
	if err != nil || s.RemoveCronJob(ctx, j.ID) != nil {
		t.Fatalf("job %+v, error %v", j, err)
	}
}

// isOld fails unless the file holds what oldDatabase wrote, as it wrote it.
func isOld(t *testing.T, path string) {
	t.Helper()
	if got := query(t, path, `PRAGMA user_version`); got != "user_version\n1\n" {
		t.Fatalf("%s: %s", path, got)
	}
	if got := query(t, path, `SELECT count(*), max(task) FROM runs`); !strings.HasSuffix(got, "\n1|old\n") {
		t.Fatalf("%s: %s", path, got)
	}
	if got := query(t, path, `SELECT count(*) FROM sqlite_schema WHERE name = 'cron_jobs'`); !strings.HasSuffix(got, "\n0\n") {
		t.Fatalf("%s has what only the next schema has", path)
	}
}

// TestMigrate opens a database of the first schema: it is copied, migrated and
// told of.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	oldDatabase(t, path)
	kept := path + ".before-0002"
	var told []sqlite.Migration
	s := open(t, path, sqlite.Options{Migrated: func(m sqlite.Migration) { told = append(told, m) }})
	hasOld(t, s)
	if len(told) != 1 || told[0] != (sqlite.Migration{Path: path, From: 1, To: 2, Copy: kept}) {
		t.Errorf("told: %+v", told)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("copy: %v, error %v", info, err)
	}
	isOld(t, kept)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, kept)
	hasOld(t, open(t, path, sqlite.Options{Migrated: func(m sqlite.Migration) { t.Errorf("migrated again: %+v", m) }}))
	if !bytes.Equal(readFile(t, kept), before) {
		t.Error("the copy was made again")
	}
	// A new file has nothing to copy.
	fresh := filepath.Join(t.TempDir(), "goclaw.db")
	open(t, fresh, sqlite.Options{Migrated: func(m sqlite.Migration) { t.Errorf("migrated: %+v", m) }})
	if _, err := os.Stat(fresh + ".before-0001"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// TestMigrateTogether opens an old database several times at once: one of them
// migrates, and the copy is of before.
func TestMigrateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	oldDatabase(t, path)
	var mu sync.Mutex
	told := 0
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrated: func(sqlite.Migration) {
				mu.Lock()
				defer mu.Unlock()
				told++
			}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if told != 1 {
		t.Errorf("%d migrated, want 1", told)
	}
	isOld(t, path+".before-0002")
	hasOld(t, open(t, path, sqlite.Options{}))
}

// TestMigrateWithoutCopy leaves a database alone that can't be copied first.
func TestMigrateWithoutCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	oldDatabase(t, path)
	if err := os.MkdirAll(path+".before-0002.new/occupied", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil || !strings.Contains(err.Error(), "can't be copied") || !strings.Contains(err.Error(), "nothing was changed") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got error %v", err)
	}
	isOld(t, path)
}

// TestMigrateKill kills a process in the middle of a migration: the database
// opens, with all that was in it.
func TestMigrateKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"migrate.copied", "migrate.before", "migrate.after"} {
		t.Run(point, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "goclaw.db")
			oldDatabase(t, path)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "STORE_TEST_MIGRATE=1", "STORE_TEST_VICTIM="+path, "STORE_TEST_POINT="+point, "STORE_TEST_COUNT=1")
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() == 1 {
				t.Fatalf("the victim ended by itself: %v", err)
			}
			isOld(t, path+".before-0002")
			if point != "migrate.after" {
				left := filepath.Join(t.TempDir(), "goclaw.db")
				for _, suffix := range []string{"", "-wal"} {
					copyFile(t, path+suffix, left+suffix)
				}
				isOld(t, left)
			}
			hasOld(t, open(t, path, sqlite.Options{}))
			isOld(t, path+".before-0002")
		})
	}
}

// TestSnapshot copies a database that is being written to: the copy is whole,
// and of one moment.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "goclaw.db")
	s := open(t, path, sqlite.Options{})
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				accept(t, s, fmt.Sprint("run-", i)) // session and run in one commit
			}
		}
	})
	for i := range 5 {
		to := filepath.Join(dir, fmt.Sprint("copy-", i))
		if version, err := sqlite.Snapshot(t.Context(), path, to); err != nil || version != 2 {
			t.Fatalf("version %d, error %v", version, err)
		}
		if version, err := sqlite.Check(t.Context(), to); err != nil || version != 2 {
			t.Fatalf("version %d, error %v", version, err)
		}
		if got := query(t, to, `SELECT count(*) FROM sessions WHERE NOT EXISTS (SELECT 1 FROM runs WHERE session_key = key)`); !strings.HasSuffix(got, "\n0\n") {
			t.Errorf("half a commit: %s", got)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("copy: %v, error %v", info, err)
		}
	}
	close(stop)
	group.Wait()
	if _, err := sqlite.Snapshot(t.Context(), path, filepath.Join(dir, "copy-0")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy over another: error %v", err)
	}
	// An old one is copied as it is.
	old := filepath.Join(dir, "old.db")
	oldDatabase(t, old)
	if version, err := sqlite.Snapshot(t.Context(), old, filepath.Join(dir, "old copy")); err != nil || version != 1 {
		t.Errorf("version %d, error %v", version, err)
	}
	isOld(t, old)
}

func TestCheckRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "goclaw.db")
	makeStore(t, path)
	data := readFile(t, path)
	for i := 3 * 4096; i < len(data); i++ {
		data[i] = byte(i)
	}
	damaged := filepath.Join(dir, "damaged.db")
	writeFile(t, damaged, data)
	newer := filepath.Join(dir, "newer.db")
	copyFile(t, path, newer)
	query(t, newer, "PRAGMA user_version = 99")
	foreign := filepath.Join(dir, "foreign.db")
	query(t, foreign, "CREATE TABLE notes (text)")
	for at, want := range map[string]string{
		damaged: "damaged", newer: "only up to 2", foreign: "another program", filepath.Join(dir, "none"): "no such file",
	} {
		_, err := sqlite.Check(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), at) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got error %v, want %q", at, err, want)
		}
		if _, err := sqlite.Snapshot(t.Context(), at, filepath.Join(dir, "copy of "+filepath.Base(at))); err == nil {
			t.Errorf("%s was copied", at)
		}
	}
}
