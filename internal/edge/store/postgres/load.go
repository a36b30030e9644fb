package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	loadRows  = 1000    // rows copied at a time
	loadBytes = 4 << 20 // or as many bytes of text and content
)

// Loader fills an empty store in one transaction: Row for every row, then
// Commit; Close ends it in any case. It is not safe for concurrent use.
type Loader struct {
	store  *Store
	conn   *pgxpool.Conn
	tx     pgx.Tx
	tables map[string]map[string]string // the types of columns
	loaded map[string]int64             // rows

	table   string // of the rows that wait
	columns []string
	rows    [][]any
	bytes   int
}

// Load begins to fill the store, which must be empty; nobody else can use it
// meanwhile. The context of Load must last until the loader is closed.
func (s *Store) Load(ctx context.Context) (*Loader, error) {
	l, err := s.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load store: %w", s.explain(err))
	}
	return l, nil
}

func (s *Store) load(ctx context.Context) (_ *Loader, err error) {
	l := &Loader{store: s, tables: map[string]map[string]string{}, loaded: map[string]int64{}}
	if l.conn, err = s.pool.Acquire(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Close(ctx)
		}
	}()
	if l.tx, err = l.conn.Begin(ctx); err != nil {
		return nil, err
	}
	if _, err := l.tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
		return nil, err
	}
	if _, err := l.tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		return nil, err
	}
	rows, err := l.tx.Query(ctx, `SELECT relname, attname, format_type(atttypid, NULL) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
		WHERE relkind = 'r' AND pg_table_is_visible(pg_class.oid) AND attnum > 0 AND NOT attisdropped
			AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'goclaw_schema'::regclass)
			AND relname NOT IN ('goclaw_schema', 'turnstile')`)
	if err != nil {
		return nil, err
	}
	var table, column, kind string
	_, err = pgx.ForEachRow(rows, []any{&table, &column, &kind}, func() error {
		if l.tables[table] == nil {
			l.tables[table] = map[string]string{}
		}
		l.tables[table][column] = kind
		return nil
	})
	if err != nil {
		return nil, err
	}
	for table := range l.tables {
		name := pgx.Identifier{table}.Sanitize()
		if _, err := l.tx.Exec(ctx, `LOCK TABLE `+name+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			return nil, err
		}
		n, err := l.count(ctx, table)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			return nil, fmt.Errorf("%s holds %d rows in %s; nothing was changed: use an empty database", s.where, n, table)
		}
	}
	return l, nil
}

func (l *Loader) count(ctx context.Context, table string) (n int64, err error) {
	err = l.tx.QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&n)
	return n, err
}

// Row adds a row; its values are int64, float64, string, []byte or nil, and may
// be used again after the call. Tables come after those that they refer to.
func (l *Loader) Row(ctx context.Context, table string, columns []string, values []any) error {
	if table != l.table || !slices.Equal(columns, l.columns) || len(l.rows) >= loadRows || l.bytes >= loadBytes {
		if err := l.flush(ctx); err != nil {
			return err
		}
		l.table, l.columns = table, slices.Clone(columns)
	}
	types := l.tables[table]
	if types == nil {
		return fmt.Errorf("load store: there is no table %s", table)
	}
	row := make([]any, len(values))
	for i, value := range values {
		kind, known := types[columns[i]]
		if !known {
			return fmt.Errorf("load store: table %s has no column %s", table, columns[i])
		}
		var err error
		if row[i], err = convert(value, kind); err != nil {
			return fmt.Errorf("load store: %s.%s: %w", table, columns[i], err)
		}
		switch v := value.(type) {
		case string:
			l.bytes += len(v)
		case []byte:
			l.bytes += len(v)
		}
	}
	l.rows = append(l.rows, row)
	return nil
}

// convert makes a value one of the column's type.
func convert(value any, kind string) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case int64:
		switch kind {
		case "bigint":
			return v, nil
		case "boolean":
			return v != 0, nil
		case "double precision":
			return float64(v), nil
		}
	case float64:
		if kind == "double precision" {
			return v, nil
		}
	case string:
		switch kind {
		case "text":
			return text(v), nil
		case "bytea":
			return []byte(v), nil
		}
	case []byte:
		switch kind {
		case "text":
			return text(v), nil
		case "bytea":
			return slices.Clone(v), nil
		}
	}
	return nil, fmt.Errorf("a %T can't become %s", value, kind)
}

// flush sends the rows that wait.
func (l *Loader) flush(ctx context.Context) error {
	if len(l.rows) == 0 {
		return nil
	}
	n, err := l.tx.CopyFrom(ctx, pgx.Identifier{l.table}, l.columns, pgx.CopyFromRows(l.rows))
	if err != nil {
		return fmt.Errorf("load store: %s: %w", l.table, l.store.explain(err))
	}
	l.loaded[l.table] += n
	l.rows, l.bytes = nil, 0
	return nil
}

// Commit checks that every row is there, makes new rows continue after the
// loaded ones, and commits. It returns how many rows each table has.
func (l *Loader) Commit(ctx context.Context) (map[string]int64, error) {
	if err := l.flush(ctx); err != nil {
		return nil, err
	}
	err := l.check(ctx)
	if err == nil {
		err = l.tx.Commit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("load store: %w", l.store.explain(err))
	}
	return l.loaded, nil
}

func (l *Loader) check(ctx context.Context) error {
	for table, columns := range l.tables {
		n, err := l.count(ctx, table)
		if err != nil {
			return err
		}
		if n != l.loaded[table] {
			return fmt.Errorf("table %s has %d rows of %d; nothing was changed", table, n, l.loaded[table])
		}
		for _, column := range []string{"ordinal", "n"} {
			if _, has := columns[column]; !has {
				continue
			}
			_, err := l.tx.Exec(ctx, fmt.Sprintf(`SELECT setval(pg_get_serial_sequence('%[1]s', '%[2]s'), coalesce(max(%[2]s), 1), max(%[2]s) IS NOT NULL)
				FROM %[1]s`, table, column))
			if err != nil {
				return err
			}
		}
	}
	var broken string
	err := l.tx.QueryRow(ctx, `SELECT coalesce(min(id), '') FROM runs WHERE profile LIKE '%\\u0000%'`).Scan(&broken)
	if err == nil && broken != "" {
		err = fmt.Errorf("the profile of run %s holds a NUL character, which PostgreSQL can't read", broken)
	}
	return err
}

// Close ends the loader; without a commit nothing was changed.
func (l *Loader) Close(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := bounded(context.WithoutCancel(ctx))
	defer cancel()
	if l.tx != nil {
		if err := l.tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) && !errors.Is(err, pgconn.ErrConnClosed) {
			l.store.log.DebugContext(ctx, "load not rolled back; the server does it", "error", strings.TrimSpace(err.Error()))
		}
	}
	l.conn.Release()
	l.conn = nil
}
