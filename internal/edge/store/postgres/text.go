package postgres

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// mark begins an escaped byte: U+001A, SUBSTITUTE, and two hex digits stand for
// a byte that PostgreSQL's text can't hold. Almost no text needs it; all strings
// pass through it (queue, scan), so that none is forgotten. JSON never needs it:
// its encoder writes control characters as \u00XX.
const mark = '\x1a'

// escape returns s as text that PostgreSQL can hold.
func escape(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, mark) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == 0 || r == mark || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%c%02x", mark, s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// unescape undoes escape. What escape did not write stays as it is.
func unescape(s string) string {
	i := strings.IndexByte(s, mark)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(s, mark) {
		b.WriteString(s[:i])
		s = s[i:]
		if one, err := hex.DecodeString(s[1:min(3, len(s))]); err == nil && len(one) == 1 {
			b.WriteByte(one[0])
			s = s[3:]
		} else {
			b.WriteByte(mark)
			s = s[1:]
		}
	}
	b.WriteString(s)
	return b.String()
}

// text is a string on its way to or from the database.
type text string

// TextValue escapes.
func (t text) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: escape(string(t)), Valid: true}, nil
}

// ScanText undoes the escapes.
func (t *text) ScanText(v pgtype.Text) error {
	if !v.Valid {
		return errors.New("a text that is never NULL is NULL")
	}
	*t = text(unescape(v.String))
	return nil
}

// queue adds a query to b; the strings among its arguments are escaped.
func queue(b *pgx.Batch, query string, args ...any) *pgx.QueuedQuery {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = text(v)
		case []string:
			list := make([]text, len(v))
			for i, s := range v {
				list[i] = text(s)
			}
			args[i] = list
		case *string:
			if v != nil {
				args[i] = text(*v)
			}
		}
	}
	return b.Queue(query, args...)
}

// scan reads a row; the strings in it are unescaped.
func scan(row pgx.Row, dest ...any) error { return row.Scan(texts(dest)...) }

// texts makes the strings among dest unescaped ones.
func texts(dest []any) []any {
	for i, d := range dest {
		if s, ok := d.(*string); ok {
			dest[i] = (*text)(s)
		}
	}
	return dest
}
