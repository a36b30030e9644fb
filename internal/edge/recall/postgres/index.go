package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/recall"
)

// Docs lists what is indexed of an agent.
func (x *Index) Docs(ctx context.Context, agent string, source goclaw.MemorySource) ([]goclaw.MemoryDoc, error) {
	var docs []goclaw.MemoryDoc
	err := x.read(ctx, "list documents", func(rows pgx.Rows) error {
		d := goclaw.MemoryDoc{Agent: agent, Source: source}
		var session string
		if err := rows.Scan(&d.Path, &session, &d.Version, &d.At, &d.Bytes); err != nil {
			return err
		}
		docs = append(docs, d)
		return docs[len(docs)-1].Session.UnmarshalText([]byte(session))
	}, `SELECT path, session, version, at, bytes FROM memory_doc WHERE agent = $1 AND source = $2 ORDER BY path COLLATE "C"`, agent, source)
	return docs, err
}

// Put replaces a document and its chunks.
func (x *Index) Put(ctx context.Context, d goclaw.MemoryDoc, chunks []goclaw.MemoryChunk) error {
	return x.write(ctx, "put document", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM memory_doc WHERE agent = $1 AND path = $2`, d.Agent, d.Path); err != nil {
			return err
		}
		var id int64
		err := tx.QueryRow(ctx, `INSERT INTO memory_doc (agent, source, session, path, version, at, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (agent, path) DO NOTHING RETURNING id`,
			d.Agent, d.Source, d.Session.String(), d.Path, d.Version, d.At, d.Bytes).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) { // another process has just put it
			return nil
		}
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		for _, c := range chunks {
			words := strings.Fields(c.Terms + " " + c.TitleTerms)
			n := len(words)
			slices.Sort(words)
			b.Queue(`INSERT INTO memory_chunk (doc, hash, n, line, end_line, title, body, terms, title_terms, words)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, array_to_tsvector($10))`,
				id, c.ID, n, c.Line, c.EndLine, plain(c.Title), plain(c.Text), c.Terms, c.TitleTerms, slices.Compact(words))
			if c.Sense != nil {
				b.Queue(putVector, c.ID, goclaw.MemorySense, c.Sense)
			}
		}
		return tx.SendBatch(ctx, b).Close()
	})
}

const putVector = `INSERT INTO memory_vector (hash, model, data) VALUES ($1, $2, $3) ON CONFLICT (hash, model) DO UPDATE SET data = excluded.data`

// plain leaves out what PostgreSQL's text can't hold.
func plain(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// Drop removes documents.
func (x *Index) Drop(ctx context.Context, agent string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return x.write(ctx, "drop documents", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM memory_doc WHERE agent = $1 AND path = ANY ($2)`, agent, paths)
		return err
	})
}

// Clear removes everything but vectors, whose chunks come back.
func (x *Index) Clear(ctx context.Context) error {
	return x.write(ctx, "clear", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM memory_doc) DELETE FROM memory_mark WHERE name = 'turns'`)
		return err
	})
}

// Mark is the last ordinal up to which turns are indexed; 0 at first.
func (x *Index) Mark(ctx context.Context) (int64, error) {
	var mark int64
	err := x.read(ctx, "read mark", func(rows pgx.Rows) error { return rows.Scan(&mark) }, `SELECT value FROM memory_mark WHERE name = 'turns'`)
	return mark, err
}

// SetMark moves the mark.
func (x *Index) SetMark(ctx context.Context, ordinal int64) error {
	return x.write(ctx, "set mark", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO memory_mark (name, value) VALUES ('turns', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, ordinal)
		return err
	})
}

// Frequencies tells how many chunks there are, how many terms they have, and
// how many chunks hold each of these terms.
func (x *Index) Frequencies(ctx context.Context, terms []string) (chunks, length int, has map[string]int, err error) {
	err = x.read(ctx, "count chunks", func(rows pgx.Rows) error { return rows.Scan(&chunks, &length) }, `SELECT count(*), coalesce(sum(n), 0) FROM memory_chunk`)
	if err != nil {
		return 0, 0, nil, err
	}
	has = map[string]int{}
	err = x.read(ctx, "count terms", func(rows pgx.Rows) error {
		var term string
		var n int
		if err := rows.Scan(&term, &n); err != nil {
			return err
		}
		if n > 0 {
			has[term] = n
		}
		return nil
	}, `SELECT term, (SELECT count(*) FROM memory_chunk WHERE words @@ (quote_literal(term))::tsquery) FROM unnest($1::text[]) AS t (term)`, terms)
	return chunks, length, has, err
}

// Vocabulary lists the terms of all chunks.
func (x *Index) Vocabulary(ctx context.Context) ([]string, error) {
	var terms []string
	err := x.read(ctx, "list terms", func(rows pgx.Rows) error {
		var term string
		err := rows.Scan(&term)
		terms = append(terms, term)
		return err
	}, `SELECT word FROM ts_stat('SELECT words FROM memory_chunk') ORDER BY word COLLATE "C"`)
	return terms, err
}

const chunkColumns = `c.hash, d.source, d.path, d.at, c.title, c.body, c.line, c.end_line, c.terms, c.title_terms`

func scanChunk(rows pgx.Rows, c *goclaw.MemoryChunk, more ...any) error {
	return rows.Scan(append([]any{&c.ID, &c.Source, &c.Path, &c.At, &c.Title, &c.Text, &c.Line, &c.EndLine, &c.Terms, &c.TitleTerms}, more...)...)
}

// restrict words the conditions of a lookup on documents; its arguments follow
// on n others.
func restrict(q goclaw.MemoryLookup, n int) (where string, args []any) {
	add := func(condition string, values ...any) {
		places := make([]any, len(values))
		for i := range values {
			places[i] = n + len(args) + i + 1
		}
		if where != "" {
			where += " AND "
		}
		where += fmt.Sprintf(condition, places...)
		args = append(args, values...)
	}
	add("d.agent = $%d", q.Agent)
	if len(q.Sources) > 0 {
		add("d.source = ANY ($%d)", q.Sources)
	}
	if !q.Session.IsZero() {
		add("d.session IN ('', $%d)", q.Session.String())
	}
	if q.Until != 0 {
		add("d.at >= $%d AND d.at < $%d", q.From, q.Until)
	}
	return where, args
}

// Match finds the chunks that hold any of the terms, those with most and rarest
// of them first; of a time alone the newest.
func (x *Index) Match(ctx context.Context, q goclaw.MemoryLookup) ([]goclaw.MemoryChunk, error) {
	var args []any
	join, order := "", "d.at DESC, c.line"
	if len(q.Terms) > 0 {
		args = []any{q.Terms}
		// A term counts the more, the fewer chunks hold it.
		join = ` JOIN (
			SELECT hit.id, sum(ln(1 + total.n / t.n)) AS worth
			FROM (SELECT term, quote_literal(term)::tsquery AS query, (SELECT count(*) FROM memory_chunk WHERE words @@ quote_literal(term)::tsquery)::float8 AS n
				FROM unnest($1::text[]) AS u (term)) AS t
			JOIN memory_chunk hit ON hit.words @@ t.query
			CROSS JOIN (SELECT count(*)::float8 AS n FROM memory_chunk) AS total
			GROUP BY hit.id) AS m ON m.id = c.id`
		order = "m.worth DESC, c.id"
	}
	where, more := restrict(q, len(args))
	args = append(append(args, more...), q.Limit)
	var found []goclaw.MemoryChunk
	err := x.read(ctx, "search", func(rows pgx.Rows) error {
		var c goclaw.MemoryChunk
		err := scanChunk(rows, &c)
		found = append(found, c)
		return err
	}, `SELECT `+chunkColumns+` FROM memory_chunk c JOIN memory_doc d ON d.id = c.doc`+join+` WHERE `+where+fmt.Sprintf(` ORDER BY %s LIMIT $%d`, order, len(args)), args...)
	return found, err
}

// Unembedded lists chunks that have no vector of a model yet; where length is not
// 0, none of that length.
func (x *Index) Unembedded(ctx context.Context, model string, length, limit int) ([]goclaw.MemoryChunk, error) {
	var found []goclaw.MemoryChunk
	err := x.read(ctx, "list chunks without a vector", func(rows pgx.Rows) error {
		var c goclaw.MemoryChunk
		err := rows.Scan(&c.ID, &c.Title, &c.Text)
		found = append(found, c)
		return err
	}, `SELECT hash, min(title), min(body) FROM memory_chunk c WHERE NOT EXISTS (SELECT 1 FROM memory_vector v WHERE v.hash = c.hash AND v.model = $1 AND ($2::int = 0 OR cardinality(v.data) = $2))
		GROUP BY hash ORDER BY min(id) LIMIT $3`, model, length, limit)
	return found, err
}

// PutVectors keeps the vectors of chunks.
func (x *Index) PutVectors(ctx context.Context, model string, vectors map[string][]float32) error {
	return x.write(ctx, "put vectors", func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		for id, v := range vectors {
			b.Queue(putVector, id, model, v)
		}
		// Of chunks that are gone, and of other models.
		b.Queue(`DELETE FROM memory_vector v WHERE model NOT IN ($1, $2) OR NOT EXISTS (SELECT 1 FROM memory_chunk c WHERE c.hash = v.hash)`, model, goclaw.MemorySense)
		return tx.SendBatch(ctx, b).Close()
	})
}

// Nearest finds the chunks whose vectors are nearest to v.
func (x *Index) Nearest(ctx context.Context, q goclaw.MemoryLookup, model string, v []float32) ([]goclaw.MemoryNear, error) {
	if _, err := x.open(ctx); err != nil {
		return nil, err
	}
	if x.Vectors() != "pgvector" {
		return x.compare(ctx, q, model, v)
	}
	where, args := restrict(q, 2)
	args = append(append([]any{model, v}, args...), q.Limit)
	var found []goclaw.MemoryNear
	err := x.read(ctx, "search vectors", func(rows pgx.Rows) error {
		var c goclaw.MemoryNear
		err := scanChunk(rows, &c.MemoryChunk, &c.Likeness)
		found = append(found, c)
		return err
	}, `SELECT `+chunkColumns+`, 1 - (v.data::vector <=> $2::real[]::vector) AS likeness
		FROM memory_chunk c JOIN memory_doc d ON d.id = c.doc JOIN memory_vector v ON v.hash = c.hash AND v.model = $1
		WHERE cardinality(v.data) = cardinality($2::real[]) AND `+where+fmt.Sprintf(` ORDER BY likeness DESC, c.id LIMIT $%d`, len(args)), args...)
	return found, err
}

// compare is Nearest without pgvector.
func (x *Index) compare(ctx context.Context, q goclaw.MemoryLookup, model string, v []float32) ([]goclaw.MemoryNear, error) {
	where, args := restrict(q, 1)
	var found []goclaw.MemoryNear
	var data []float32
	err := x.read(ctx, "search vectors", func(rows pgx.Rows) error {
		var c goclaw.MemoryNear
		if err := scanChunk(rows, &c.MemoryChunk, &data); err != nil || len(data) != len(v) {
			return err
		}
		c.Likeness = recall.Likeness(data, v)
		found = append(found, c)
		return nil
	}, `SELECT `+chunkColumns+`, v.data FROM memory_chunk c JOIN memory_doc d ON d.id = c.doc JOIN memory_vector v ON v.hash = c.hash AND v.model = $1
		WHERE `+where+` ORDER BY c.id`, append([]any{model}, args...)...)
	slices.SortStableFunc(found, func(a, b goclaw.MemoryNear) int {
		switch {
		case a.Likeness > b.Likeness:
			return -1
		case a.Likeness < b.Likeness:
			return 1
		}
		return 0
	})
	return found[:min(len(found), q.Limit)], err
}

// Count sums up what is indexed of an agent.
func (x *Index) Count(ctx context.Context, agent, model string) (goclaw.MemoryStatus, error) {
	s := goclaw.MemoryStatus{Agent: agent}
	err := x.read(ctx, "count", func(rows pgx.Rows) error {
		return rows.Scan(&s.Files, &s.Turns, &s.Bytes, &s.Chunks, &s.Embedded)
	}, `SELECT
		(SELECT count(*) FROM memory_doc WHERE agent = $1 AND source = 'files'),
		(SELECT count(*) FROM memory_doc WHERE agent = $1 AND source = 'transcripts'),
		(SELECT coalesce(sum(bytes), 0)::bigint FROM memory_doc WHERE agent = $1),
		(SELECT count(*) FROM memory_chunk c JOIN memory_doc d ON d.id = c.doc WHERE agent = $1),
		(SELECT count(*) FROM memory_chunk c JOIN memory_doc d ON d.id = c.doc JOIN memory_vector v ON v.hash = c.hash WHERE agent = $1 AND model = $2)`, agent, model)
	return s, err
}

func (x *Index) read(ctx context.Context, op string, each func(pgx.Rows) error, query string, args ...any) error {
	pool, err := x.open(ctx)
	if err != nil {
		return err
	}
	rows, err := pool.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("index of memory: %s: %w", op, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return fmt.Errorf("index of memory: %s: %w", op, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("index of memory: %s: %w", op, err)
	}
	return nil
}

func (x *Index) write(ctx context.Context, op string, do func(pgx.Tx) error) error {
	pool, err := x.open(ctx)
	if err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, pool, do); err != nil {
		return fmt.Errorf("index of memory: %s: %w", op, err)
	}
	return nil
}
