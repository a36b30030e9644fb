package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

func TestFileMode(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "goclaw.db"), sqlite.Options{})
	accept(t, s, "r1")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("%d files, want the database and its log", len(files))
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", f.Name(), info.Mode())
		}
	}
}

func TestOddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%41;é'\".db")
	s := open(t, path, sqlite.Options{Sync: "normal"})
	accept(t, s, "r1")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path, sqlite.Options{}).Run(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
}

// TestOpenTogether opens a new file several times at once, as a gateway and a
// command do that start together; each sees what the others write.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, _, err := s.Accept(t.Context(), turn(fmt.Sprintf("r%d", i))); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	runs, err := open(t, path, sqlite.Options{}).Runs(t.Context(), goclaw.RunFilter{})
	if err != nil || len(runs) != 4 {
		t.Errorf("%d runs, error %v; want 4", len(runs), err)
	}
}

// TestRefuses opens what is not ours, or not readable: one line says what is
// wrong with which file, and the file stays as it is.
func TestRefuses(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want []string
	}{
		{"text", func(t *testing.T, path string) {
			writeFile(t, path, []byte(strings.Repeat("these are somebody's notes\n", 100)))
		}, []string{"not a SQLite database", "left as it is", "another path"}},
		{"a short text", func(t *testing.T, path string) { writeFile(t, path, []byte("notes")) }, []string{"not a SQLite database"}},
		{"another program's database", func(t *testing.T, path string) {
			query(t, path, `CREATE TABLE notes (text)`)
		}, []string{"another program", "left as it is"}},
		{"a newer schema", func(t *testing.T, path string) {
			makeStore(t, path)
			query(t, path, `PRAGMA user_version = 99`)
		}, []string{"version 99", "only up to 2", "newer goclaw"}},
		{"a damaged schema", func(t *testing.T, path string) {
			makeStore(t, path)
			data := readFile(t, path)
			copy(data[100:4096], bytes.Repeat([]byte{0xa5}, 3996))
			writeFile(t, path, data)
		}, []string{"damaged", "restore a backup"}},
		{"half a file", func(t *testing.T, path string) {
			makeStore(t, path)
			data := readFile(t, path)
			writeFile(t, path, data[:len(data)/2])
		}, []string{"damaged", "restore a backup"}},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"cannot be opened"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "goclaw.db")
			tt.make(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			var before []byte
			if !info.IsDir() {
				before = readFile(t, path)
			}
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				_ = s.Close()
				t.Fatal("Open accepted it")
			}
			for _, want := range append(tt.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines:\n%v", err)
			}
			if before != nil && !bytes.Equal(readFile(t, path), before) {
				t.Error("Open changed the file")
			}
		})
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "none", "goclaw.db"), sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "create the folder") {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{Sync: "sometimes"}); err == nil {
		t.Error("an unknown sync mode was accepted")
	}
}

// TestView pins the leading columns of subagent_runs, which scripts rely on.
func TestView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s := open(t, path, sqlite.Options{})
	accept(t, s, "a-user's-turn")
	for _, label := range []string{"", "mine"} {
		a := turn("worker-" + label)
		a.Run.Trigger, a.Run.Label, a.Run.Task, a.Run.Parent, a.Run.Depth = goclaw.TriggerSpawn, label, "task", "p", 1
		a.Run.Requester = goclaw.MainKey("a")
		a.Run.Profile = goclaw.Profile{Model: "p/m", Definition: "planner", DefinitionSHA: "sha"}
		if _, _, err := s.Accept(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Claim(t.Context(), goclaw.ClaimRequest{Owner: "o", Now: 10, Lease: 1e9, Max: 2}); err != nil {
		t.Fatal(err)
	}
	usage := goclaw.Usage{Input: 4, Output: 3, CacheRead: 2, CacheWrite: 1}
	err := s.End(t.Context(), goclaw.Fence{Run: "worker-", Epoch: 1, Owner: "o"},
		goclaw.Ending{State: goclaw.StateFailed, Result: "r", Error: "e", Batch: goclaw.Batch{Now: 25, Usage: &usage}})
	if err != nil {
		t.Fatal(err)
	}
	for i, session := range []goclaw.SessionKey{goclaw.MainKey("cron"), goclaw.CronKey("a", "j")} {
		a := turn(fmt.Sprint("cron-", i))
		a.Run.Trigger, a.Run.Session, a.Run.CreatedAt = goclaw.TriggerCron, session, 9
		if _, _, err := s.Accept(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	want := `id session_key requester_key task label model status result error started_at finished_at duration_ms created_at ` +
		`definition definition_sha depth parent input_tokens output_tokens cache_read_tokens cache_write_tokens cost_usd attempt
cron-1|agent:a:cron:j|||cron-1||queued||||||9|||0||0|0|0|0||0
worker-|agent:a:api:user:worker-|agent:a:main|task|planner|p/m|failed|r|e|10|25|15|1|planner|sha|1|p|4|3|2|1||1
worker-mine|agent:a:api:user:worker-mine|agent:a:main|task|mine|p/m|queued||||||1|planner|sha|1|p|0|0|0|0||0
`
	if got := query(t, path, `SELECT * FROM subagent_runs ORDER BY id`); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func makeStore(t *testing.T, path string) {
	t.Helper()
	s := open(t, path, sqlite.Options{})
	accept(t, s, "r1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// query runs one statement on the file and returns a header and its rows.
func query(t *testing.T, path, text string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString(strings.Join(columns, " ") + "\n")
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range cells {
			dest[i] = &cells[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		for i, c := range cells {
			if i > 0 {
				out.WriteByte('|')
			}
			out.WriteString(c.String)
		}
		out.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
