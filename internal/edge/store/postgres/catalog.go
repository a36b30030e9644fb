package postgres

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"goclaw"
)

// minPrefix is the length from which the beginning of an id may name a run.
const minPrefix = 4

// Run finds a run by id, or by a prefix of at least four characters that no
// other run has.
func (s *Store) Run(ctx context.Context, id string) (goclaw.Run, error) {
	const op = "find run"
	var exact, alike []goclaw.Run
	var n int
	long := utf8.RuneCountInString(id) >= minPrefix
	err := s.read(ctx, op, func(b *pgx.Batch) {
		collectRuns(queue(b, `SELECT `+runColumns+` FROM runs WHERE id = $1`, id), &exact)
	})
	if err == nil && len(exact) == 0 && long {
		const alikes = ` FROM runs WHERE id >= $1 AND id < $1 || chr(1114111)`
		err = s.read(ctx, op, func(b *pgx.Batch) {
			into(queue(b, `SELECT count(*)`+alikes, id), &n)
			collectRuns(queue(b, `SELECT `+runColumns+alikes+` LIMIT 1`, id), &alike)
		})
	}
	switch {
	case err != nil:
		return goclaw.Run{}, err
	case len(exact) > 0:
		return exact[0], nil
	case !long:
		return goclaw.Run{}, fmt.Errorf("%s %q (the beginning of an id must have at least %d characters): %w", op, id, minPrefix, goclaw.ErrNotFound)
	case n > 1:
		return goclaw.Run{}, fmt.Errorf("%s: %w", op, goclaw.BadRequest(fmt.Sprintf("%d runs begin with %q; give more of its id", n, id)))
	case len(alike) == 0:
		return goclaw.Run{}, fmt.Errorf("%s %q: %w", op, id, goclaw.ErrNotFound)
	}
	return alike[0], nil
}

// Runs returns the runs that f selects, newest first.
func (s *Store) Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error) {
	query := `SELECT ` + runColumns + ` FROM runs WHERE true`
	var args []any
	and := func(condition string, value any) {
		args = append(args, value)
		query += fmt.Sprintf(" AND "+condition, len(args))
	}
	if !f.Session.IsZero() {
		and("session_key = $%d", f.Session.String())
	}
	if !f.Requester.IsZero() {
		and("requester_key = $%d AND requester_key <> ''", f.Requester.String())
	}
	if f.Parent != "" {
		and("parent = $%d AND parent <> ''", f.Parent)
	}
	if f.Root != "" {
		and("root = $%d", f.Root)
	}
	if f.Before != 0 {
		and("ordinal < $%d", f.Before)
	}
	if len(f.Triggers) > 0 {
		and("trigger = ANY($%d)", f.Triggers)
	}
	switch {
	case f.Active && f.Parent == "" && f.Root == "" && f.Requester.IsZero():
		query += ` AND finished_at IS NULL`
	case f.Active:
		query += ` AND coalesce(finished_at, -1) = -1`
	}
	if f.Ended {
		query += ` AND finished_at IS NOT NULL`
	}
	if f.After > 0 {
		and("ordinal > $%d", f.After)
	}
	var most *int
	if f.Limit > 0 {
		most = &f.Limit
	}
	args = append(args, most)
	order := "ordinal"
	if f.Parent != "" || f.Root != "" || !f.Requester.IsZero() {
		order = "ordinal + 0" // few are sorted, not all walked over in order
	}
	query += fmt.Sprintf(` ORDER BY %s DESC LIMIT $%d`, order, len(args))
	var runs []goclaw.Run
	err := s.read(ctx, "list runs", func(b *pgx.Batch) { collectRuns(queue(b, query, args...), &runs) })
	return runs, err
}

// Counts returns how many runs are under way (claimed and not ended, also if
// their owner let go or they wait) and how many are queued.
func (s *Store) Counts(ctx context.Context) (active, queued int, err error) {
	err = s.read(ctx, "count runs", func(b *pgx.Batch) {
		into(queue(b, `SELECT count(*) FILTER (WHERE state <> 'queued'), count(*) FILTER (WHERE state = 'queued')
			FROM runs WHERE finished_at IS NULL`), &active, &queued)
	})
	return active, queued, err
}
