package recall

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	driver "modernc.org/sqlite"

	"goclaw/internal/core/recall"
)

// plain is full text search as FTS5 gives it: the same chunks with their
// headings, and nothing else.
type plain struct{ db *sql.DB }

func newPlain(ctx context.Context, workspace string) (_ plain, err error) {
	connector, err := driver.NewConnector(":memory:")
	if err != nil {
		return plain{}, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	for _, create := range []string{
		`CREATE VIRTUAL TABLE plain USING fts5 (heading, body)`,
		`CREATE VIRTUAL TABLE stemmed USING fts5 (heading, body, tokenize = 'porter')`,
	} {
		if _, err := db.ExecContext(ctx, create); err != nil {
			return plain{}, err
		}
	}
	files, err := filepath.Glob(filepath.Join(workspace, "memory", "*.md"))
	if err != nil {
		return plain{}, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return plain{}, err
		}
		for _, c := range recall.Split(string(text)) {
			for _, table := range []string{"plain", "stemmed"} {
				if _, err := db.ExecContext(ctx, `INSERT INTO `+table+` VALUES (?, ?)`, headingOf(c.Title), c.Text); err != nil {
					return plain{}, err
				}
			}
		}
	}
	return plain{db}, nil
}

func (p plain) close() { _ = p.db.Close() } // in memory: nothing is lost

// find joins the words of a question.
func (p plain) find(table, join string) finder {
	return func(ctx context.Context, q string) (headings []string, err error) {
		words := strings.FieldsFunc(q, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		for i, w := range words {
			words[i] = `"` + w + `"`
		}
		rows, err := p.db.QueryContext(ctx, `SELECT heading FROM `+table+` WHERE `+table+` MATCH ? ORDER BY rank LIMIT ?`, strings.Join(words, join), most)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var h string
			if err := rows.Scan(&h); err != nil {
				return nil, err
			}
			headings = append(headings, h)
		}
		return headings, rows.Err()
	}
}
