package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// maxGroup bounds how many writes share a commit, so that the first of a
// steady stream is answered soon.
const maxGroup = 128

// write is one caller's transaction on its way through the writer.
type write struct {
	ctx  context.Context // the caller's: asked whether it still wants the write
	fn   func(context.Context, *tx) error
	err  error      // how fn went
	done chan error // takes exactly one answer
}

// tx is what a write may use: the writer's connection inside a transaction.
// Its statements are prepared once.
type tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	wrote bool // the current write changed a row
}

// forget closes the statements. The pool doesn't do that for those of a single
// connection, and SQLite keeps a connection with open statements half alive:
// the write-ahead log would stay behind.
func (t *tx) forget() {
	for _, st := range t.stmts {
		_ = st.Close() // repeats what its last execution has reported
	}
}

func (t *tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	st, err := t.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = st
	return st, nil
}

// exec runs a statement that returns no rows and reports how many it changed.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := t.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	t.wrote = t.wrote || n > 0
	return n, err
}

// insert is exec for one row; it returns the row's id.
func (t *tx) insert(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := t.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	t.wrote = true
	return res.LastInsertId()
}

// returning is query for a statement that changes the rows it returns.
func (t *tx) returning(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return t.query(ctx, func(rows *sql.Rows) error {
		t.wrote = true
		return scan(rows)
	}, query, args...)
}

// query calls scan for every row.
func (t *tx) query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	st, err := t.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

// row scans the only row; sql.ErrNoRows if there is none.
func (t *tx) row(ctx context.Context, query string, args []any, dest ...any) error {
	st, err := t.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(dest...)
}

// control runs a statement that steers the transaction.
func (t *tx) control(ctx context.Context, query string) error {
	st, err := t.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

// write hands fn to the writer and waits for the commit that holds it. fn runs
// on the writer's goroutine, not at all if ctx ends before its turn comes;
// once it has begun, its outcome is returned whatever becomes of ctx.
func (s *Store) write(ctx context.Context, op string, fn func(context.Context, *tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	w := &write{ctx: ctx, fn: fn, done: make(chan error, 1)}
	var err error
	select {
	case s.queue <- w:
		err = <-w.done
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.quit:
		err = errClosed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	return nil
}

// run is the writer: it alone uses the writing connection, until Close.
func (s *Store) run(ctx context.Context) {
	defer close(s.done)
	t := &tx{conn: s.conn, stmts: map[string]*sql.Stmt{}}
	defer t.forget()
	for {
		select {
		case <-s.quit:
			return
		case w := <-s.queue:
			s.group(ctx, t, w)
		}
	}
}

// next takes a write that is waiting, or nil.
func (s *Store) next() *write {
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

// group runs w and whatever else is or comes to be waiting meanwhile in one
// transaction, commits it and then answers everyone.
func (s *Store) group(ctx context.Context, t *tx, w *write) {
	group := make([]*write, 0, 16)
	lost := t.control(ctx, "BEGIN IMMEDIATE")
	wrote := false
	for ; w != nil; w = s.next() {
		group = append(group, w)
		if lost == nil {
			lost = t.attempt(ctx, w)
			wrote = wrote || w.err == nil && t.wrote
		}
		if len(group) == maxGroup {
			break
		}
	}
	if lost == nil && wrote {
		s.hook("commit.before")
		lost = t.control(ctx, "COMMIT")
		if lost == nil {
			s.commits.Add(1)
			s.hook("commit.after")
		}
	}
	if lost != nil || !wrote {
		// An error here only says that SQLite has rolled back already.
		_ = t.control(ctx, "ROLLBACK")
	}
	if lost != nil {
		s.log.ErrorContext(ctx, "store transaction lost", "path", s.path, "writes", len(group), "error", lost)
	}
	for _, w := range group {
		// A write without an error of its own is only as good as the commit,
		// even if it changed nothing: it may have seen its neighbours' rows.
		if w.err == nil {
			w.err = lost
		}
		w.done <- w.err
	}
}

// attempt runs w inside a savepoint, so that its failure undoes its own
// changes only. An error means that the whole transaction is lost.
func (t *tx) attempt(ctx context.Context, w *write) error {
	t.wrote = false
	if w.err = w.ctx.Err(); w.err != nil {
		return nil
	}
	if err := t.control(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	if w.err = w.fn(ctx, t); w.err != nil {
		// After a full disk or an I/O error SQLite may have rolled back all.
		if err := t.control(ctx, "ROLLBACK TO one"); err != nil {
			return errors.Join(w.err, err)
		}
	}
	return t.control(ctx, "RELEASE one")
}

// each calls scan for every row and closes rows.
func each(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// read calls scan for every row of a query on one of the reading connections.
func (s *Store) read(ctx context.Context, op string, scan func(*sql.Rows) error, query string, args ...any) error {
	err := func() error {
		st, err := s.reader(ctx, query)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		return each(rows, scan)
	}()
	if err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	return nil
}

func (s *Store) reader(ctx context.Context, query string) (*sql.Stmt, error) {
	select {
	case <-s.quit:
		return nil, errClosed
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.reads[query]; ok {
		return st, nil
	}
	st, err := s.readerDB.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.reads[query] = st
	return st, nil
}
