package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// tables are all tables, each after those that it refers to.
var tables = [...]string{
	"sessions", "processes", "runs", "events", "inbox", "outbox", "blobs", "artifacts", "calls", "holds", "rates", "control", "cron_jobs", "firings",
}

// Dump calls row for every row of every table, tables after those that they
// refer to, as all of them were at one moment. Values are int64, float64,
// string, []byte or nil, in the order of the columns; row must not keep them.
func (s *Store) Dump(ctx context.Context, row func(table string, columns []string, values []any) error) error {
	const op = "dump store"
	select {
	case <-s.quit:
		return fmt.Errorf("%s: %w", op, errClosed)
	default:
	}
	conn, err := s.readerDB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	defer func() { _ = conn.Close() }() // it only reads
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	for _, table := range tables {
		rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", op, table, s.explain(err))
		}
		columns, err := rows.Columns()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", op, table, err)
		}
		values := make([]any, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		err = each(rows, func(r *sql.Rows) error {
			if err := r.Scan(dest...); err != nil {
				return err
			}
			return row(table, columns, values)
		})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", op, table, s.explain(err))
		}
	}
	return nil
}
