package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
)

// minPrefix is the length from which the beginning of an id may name a run.
const minPrefix = 4

// Run finds a run by id, or by a prefix of at least four characters that no
// other run has.
func (s *Store) Run(ctx context.Context, id string) (goclaw.Run, error) {
	const op = "find run"
	var runs []goclaw.Run
	err := s.read(ctx, op, collectRuns(&runs), `SELECT `+runColumns+` FROM runs WHERE id = ?`, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if len(runs) == 1 {
		return runs[0], nil
	}
	if utf8.RuneCountInString(id) < minPrefix {
		return goclaw.Run{}, fmt.Errorf("%s %q (the beginning of an id must have at least %d characters): %w", op, id, minPrefix, goclaw.ErrNotFound)
	}
	var n int
	err = s.read(ctx, op, func(rows *sql.Rows) error { return rows.Scan(&n) },
		`SELECT count(*) FROM runs WHERE id >= ?1 AND id < ?1 || char(0x10ffff)`, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if n > 1 {
		return goclaw.Run{}, fmt.Errorf("%s: %w", op, goclaw.BadRequest(fmt.Sprintf("%d runs begin with %q; give more of its id", n, id)))
	}
	err = s.read(ctx, op, collectRuns(&runs),
		`SELECT `+runColumns+` FROM runs WHERE id >= ?1 AND id < ?1 || char(0x10ffff) LIMIT 1`, id)
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("%s %q: %w", op, id, goclaw.ErrNotFound)
	}
	if err != nil {
		return goclaw.Run{}, err
	}
	return runs[0], nil
}

// Runs returns the runs that f selects, newest first.
func (s *Store) Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error) {
	query := `SELECT ` + runColumns + ` FROM runs`
	switch {
	case f.Active && !f.Requester.IsZero() && slices.Equal(f.Triggers, []goclaw.Trigger{goclaw.TriggerSpawn}):
		// Every turn asks this. Left alone, SQLite walks over all workers that
		// the session ever had.
		query += ` INDEXED BY runs_children WHERE trigger = 'spawn'`
		f.Triggers = nil
	case f.Active:
		query += ` INDEXED BY runs_open WHERE 1` // the others hold all that ever was
	default:
		query += ` WHERE 1`
	}
	var args []any
	and := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if !f.Session.IsZero() {
		and("session_key = ?", f.Session.String())
	}
	if !f.Requester.IsZero() {
		and("requester_key = ? AND requester_key <> ''", f.Requester.String())
	}
	if f.Parent != "" {
		and("parent = ? AND parent <> ''", f.Parent)
	}
	if f.Root != "" {
		and("root = ?", f.Root)
	}
	if f.Before != 0 {
		and("ordinal < ?", f.Before)
	}
	if len(f.Triggers) > 0 {
		values := make([]any, len(f.Triggers))
		for i, t := range f.Triggers {
			values[i] = t
		}
		and("trigger IN (+?"+strings.Repeat(", +?", len(values)-1)+")", values...)
	}
	if f.Active {
		and("finished_at IS NULL")
	}
	if f.Ended {
		and("finished_at IS NOT NULL")
	}
	if f.After > 0 {
		and("ordinal > ?", f.After)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	var runs []goclaw.Run
	err := s.read(ctx, "list runs", collectRuns(&runs), query+` ORDER BY ordinal DESC LIMIT ? + 0`, append(args, limit)...)
	return runs, err
}

// Blob returns stored content by its SHA-256.
func (s *Store) Blob(ctx context.Context, sha string) ([]byte, error) {
	var data []byte
	found := false
	err := s.read(ctx, "read blob", func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&data)
	}, `SELECT data FROM blobs WHERE sha256 = ?`, sha)
	if err == nil && !found {
		err = fmt.Errorf("read blob %s: %w", sha, goclaw.ErrNotFound)
	}
	return data, err
}
