package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/edge/recall"
)

// Docs lists what is indexed of an agent.
func (x *Index) Docs(ctx context.Context, agent string, source goclaw.MemorySource) ([]goclaw.MemoryDoc, error) {
	var docs []goclaw.MemoryDoc
	err := x.read(ctx, "list documents", func(rows *sql.Rows) error {
		d := goclaw.MemoryDoc{Agent: agent, Source: source}
		var session string
		if err := rows.Scan(&d.Path, &session, &d.Version, &d.At, &d.Bytes); err != nil {
			return err
		}
		docs = append(docs, d)
		return docs[len(docs)-1].Session.UnmarshalText([]byte(session))
	}, `SELECT path, session, version, at, bytes FROM doc WHERE agent = ? AND source = ? ORDER BY path`, agent, source)
	return docs, err
}

// Put replaces a document and its chunks.
func (x *Index) Put(ctx context.Context, d goclaw.MemoryDoc, chunks []goclaw.MemoryChunk) error {
	return x.write(ctx, "put document", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM doc WHERE agent = ? AND path = ?`, d.Agent, d.Path); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO doc (agent, source, session, path, version, at, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			d.Agent, d.Source, d.Session.String(), d.Path, d.Version, d.At, d.Bytes)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		for _, c := range chunks {
			n := strings.Count(c.Terms, " ") + strings.Count(c.TitleTerms, " ") + 2
			res, err := tx.ExecContext(ctx, `INSERT INTO chunk (doc, hash, n, line, end_line, title, body, terms, title_terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				id, c.ID, n, c.Line, c.EndLine, c.Title, c.Text, c.Terms, c.TitleTerms)
			if err != nil {
				return err
			}
			row, err := res.LastInsertId()
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO fts (rowid, terms, title_terms) VALUES (?, ?, ?)`, row, c.Terms, c.TitleTerms); err != nil {
				return err
			}
			if c.Sense == nil {
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vector (hash, model, data) VALUES (?, ?, ?)`, c.ID, goclaw.MemorySense, recall.Encode(c.Sense)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Drop removes documents.
func (x *Index) Drop(ctx context.Context, agent string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return x.write(ctx, "drop documents", func(tx *sql.Tx) error {
		for _, p := range paths {
			if _, err := tx.ExecContext(ctx, `DELETE FROM doc WHERE agent = ? AND path = ?`, agent, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// Clear removes everything but vectors, whose chunks come back.
func (x *Index) Clear(ctx context.Context) error {
	return x.write(ctx, "clear", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM doc; DELETE FROM mark`)
		return err
	})
}

// Mark is the last ordinal up to which turns are indexed; 0 at first.
func (x *Index) Mark(ctx context.Context) (int64, error) {
	var mark int64
	err := x.read(ctx, "read mark", func(rows *sql.Rows) error { return rows.Scan(&mark) }, `SELECT value FROM mark WHERE name = 'turns'`)
	return mark, err
}

// SetMark moves the mark.
func (x *Index) SetMark(ctx context.Context, ordinal int64) error {
	return x.write(ctx, "set mark", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO mark (name, value) VALUES ('turns', ?)`, ordinal)
		return err
	})
}

// Frequencies tells how many chunks there are, how many terms they have, and
// how many chunks hold each of these terms.
func (x *Index) Frequencies(ctx context.Context, terms []string) (chunks, length int, has map[string]int, err error) {
	err = x.read(ctx, "count chunks", func(rows *sql.Rows) error { return rows.Scan(&chunks, &length) }, `SELECT count(*), coalesce(sum(n), 0) FROM chunk`)
	if err != nil {
		return 0, 0, nil, err
	}
	has = map[string]int{}
	for len(terms) > 0 {
		part := terms[:min(500, len(terms))]
		terms = terms[len(part):]
		args := make([]any, len(part))
		for i, t := range part {
			args[i] = t
		}
		err = x.read(ctx, "count terms", func(rows *sql.Rows) error {
			var term string
			var n int
			if err := rows.Scan(&term, &n); err != nil {
				return err
			}
			has[term] = n
			return nil
		}, `SELECT term, doc FROM vocabulary WHERE term IN (?`+strings.Repeat(", ?", len(part)-1)+`)`, args...)
		if err != nil {
			return 0, 0, nil, err
		}
	}
	return chunks, length, has, nil
}

// Vocabulary lists the terms of all chunks.
func (x *Index) Vocabulary(ctx context.Context) ([]string, error) {
	var terms []string
	err := x.read(ctx, "list terms", func(rows *sql.Rows) error {
		var term string
		err := rows.Scan(&term)
		terms = append(terms, term)
		return err
	}, `SELECT term FROM vocabulary`)
	return terms, err
}

const chunkColumns = `chunk.hash, doc.source, doc.path, doc.at, chunk.title, chunk.body, chunk.line, chunk.end_line, chunk.terms, chunk.title_terms`

func scanChunk(rows *sql.Rows, c *goclaw.MemoryChunk, more ...any) error {
	return rows.Scan(append([]any{&c.ID, &c.Source, &c.Path, &c.At, &c.Title, &c.Text, &c.Line, &c.EndLine, &c.Terms, &c.TitleTerms}, more...)...)
}

// restrict words the conditions of a lookup on documents.
func restrict(q goclaw.MemoryLookup) (where string, args []any) {
	where, args = `doc.agent = ?`, []any{q.Agent}
	if len(q.Sources) > 0 {
		where += ` AND doc.source IN (?` + strings.Repeat(", ?", len(q.Sources)-1) + `)`
		for _, s := range q.Sources {
			args = append(args, s)
		}
	}
	if !q.Session.IsZero() {
		where += ` AND doc.session IN ('', ?)`
		args = append(args, q.Session.String())
	}
	if q.Until != 0 {
		where += ` AND doc.at >= ? AND doc.at < ?`
		args = append(args, q.From, q.Until)
	}
	return where, args
}

// Match finds the chunks that hold any of the terms, the likeliest first; of a
// time alone the newest.
func (x *Index) Match(ctx context.Context, q goclaw.MemoryLookup) ([]goclaw.MemoryChunk, error) {
	where, args := restrict(q)
	query := `SELECT ` + chunkColumns + ` FROM doc JOIN chunk ON chunk.doc = doc.id WHERE ` + where + ` ORDER BY doc.at DESC, chunk.line LIMIT ?`
	if len(q.Terms) > 0 {
		query = `SELECT ` + chunkColumns + ` FROM fts JOIN chunk ON chunk.id = fts.rowid JOIN doc ON doc.id = chunk.doc
			WHERE fts MATCH ? AND ` + where + ` ORDER BY bm25(fts, 1.0, 2.0), chunk.id LIMIT ?`
		args = append([]any{anyOf(q.Terms)}, args...)
	}
	var found []goclaw.MemoryChunk
	err := x.read(ctx, "search", func(rows *sql.Rows) error {
		var c goclaw.MemoryChunk
		err := scanChunk(rows, &c)
		found = append(found, c)
		return err
	}, query, append(args, q.Limit)...)
	return found, err
}

// anyOf is the FTS5 query for any of some terms.
func anyOf(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return strings.Join(quoted, " OR ")
}

// Unembedded lists chunks that have no vector of a model yet; where length is not
// 0, none of that length.
func (x *Index) Unembedded(ctx context.Context, model string, length, limit int) ([]goclaw.MemoryChunk, error) {
	var found []goclaw.MemoryChunk
	err := x.read(ctx, "list chunks without a vector", func(rows *sql.Rows) error {
		var c goclaw.MemoryChunk
		err := rows.Scan(&c.ID, &c.Title, &c.Text)
		found = append(found, c)
		return err
	}, `SELECT hash, min(title), min(body) FROM chunk WHERE NOT EXISTS (SELECT 1 FROM vector WHERE vector.hash = chunk.hash AND vector.model = ?1 AND (?2 = 0 OR length(vector.data) = 4 * ?2))
		GROUP BY hash ORDER BY min(id) LIMIT ?3`, model, length, limit)
	return found, err
}

// PutVectors keeps the vectors of chunks.
func (x *Index) PutVectors(ctx context.Context, model string, vectors map[string][]float32) error {
	return x.write(ctx, "put vectors", func(tx *sql.Tx) error {
		for id, v := range vectors {
			if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vector (hash, model, data) VALUES (?, ?, ?)`, id, model, recall.Encode(v)); err != nil {
				return err
			}
		}
		// Of chunks that are gone, and of other models.
		_, err := tx.ExecContext(ctx, `DELETE FROM vector WHERE model NOT IN (?, ?) OR hash NOT IN (SELECT hash FROM chunk)`, model, goclaw.MemorySense)
		return err
	})
}

// Nearest finds the chunks whose vectors are nearest to v.
func (x *Index) Nearest(ctx context.Context, q goclaw.MemoryLookup, model string, v []float32) ([]goclaw.MemoryNear, error) {
	where, args := restrict(q)
	data := recall.Encode(v)
	var found []goclaw.MemoryNear
	err := x.read(ctx, "search vectors", func(rows *sql.Rows) error {
		var c goclaw.MemoryNear
		err := scanChunk(rows, &c.MemoryChunk, &c.Likeness)
		found = append(found, c)
		return err
	}, `SELECT `+chunkColumns+`, 1 - vec_distance_cosine(vector.data, ?) AS likeness
		FROM doc JOIN chunk ON chunk.doc = doc.id JOIN vector ON vector.hash = chunk.hash AND vector.model = ?
		WHERE length(vector.data) = ? AND `+where+` ORDER BY likeness DESC, chunk.id LIMIT ?`,
		append(append([]any{data, model, len(data)}, args...), q.Limit)...)
	return found, err
}

// Count sums up what is indexed of an agent.
func (x *Index) Count(ctx context.Context, agent, model string) (goclaw.MemoryStatus, error) {
	s := goclaw.MemoryStatus{Agent: agent}
	err := x.read(ctx, "count", func(rows *sql.Rows) error {
		return rows.Scan(&s.Files, &s.Turns, &s.Bytes, &s.Chunks, &s.Embedded)
	}, `SELECT
		(SELECT count(*) FROM doc WHERE agent = ?1 AND source = 'files'),
		(SELECT count(*) FROM doc WHERE agent = ?1 AND source = 'transcripts'),
		(SELECT coalesce(sum(bytes), 0) FROM doc WHERE agent = ?1),
		(SELECT count(*) FROM chunk JOIN doc ON doc.id = chunk.doc WHERE agent = ?1),
		(SELECT count(*) FROM chunk JOIN doc ON doc.id = chunk.doc JOIN vector USING (hash) WHERE agent = ?1 AND model = ?2)`, agent, model)
	return s, err
}

func (x *Index) read(ctx context.Context, op string, each func(*sql.Rows) error, query string, args ...any) error {
	db, err := x.open(ctx)
	if err != nil {
		return err
	}
	if err := collect(ctx, db, each, query, args); err != nil {
		return x.failed(op, db, err)
	}
	return nil
}

func collect(ctx context.Context, db *sql.DB, each func(*sql.Rows) error, query string, args []any) (err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (x *Index) write(ctx context.Context, op string, do func(*sql.Tx) error) error {
	db, err := x.open(ctx)
	if err != nil {
		return err
	}
	if err := transact(ctx, db, do); err != nil {
		return x.failed(op, db, err)
	}
	return nil
}

func transact(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rollback(tx)) }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// failed words an error. Where the file turns out to be damaged it is thrown
// away: the next who needs the index finds an empty one.
func (x *Index) failed(op string, db *sql.DB, err error) error {
	if !damaged(err) {
		return fmt.Errorf("index of memory: %s: %w", op, err)
	}
	return errors.Join(fmt.Errorf("index of memory: %s: %w: %w", op, goclaw.ErrMemoryDamaged, err), x.discard(db, err))
}
