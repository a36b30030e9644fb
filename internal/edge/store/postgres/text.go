package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// mark begins an escaped byte: U+001A, SUBSTITUTE, and two hex digits stand for
// a byte that PostgreSQL's text can't hold. Almost no text needs it; all text
// of the connection passes through it, so that none is forgotten. (JSON never
// does: its encoder writes control characters as \u00XX.)
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

// escapedText is the codec of text columns and parameters. Slices of bytes pass
// as they are: they are used for JSON only.
type escapedText struct{ pgtype.TextCodec }

// register makes the connection's text escaped.
func register(types *pgtype.Map) {
	text := &pgtype.Type{Name: "text", OID: pgtype.TextOID, Codec: escapedText{}}
	types.RegisterType(text)
	types.RegisterType(&pgtype.Type{Name: "_text", OID: pgtype.TextArrayOID, Codec: &pgtype.ArrayCodec{ElementType: text}})
}

// PlanEncode escapes strings.
func (c escapedText) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(string); ok {
		return encodeEscaped{}
	}
	return c.TextCodec.PlanEncode(m, oid, format, value)
}

type encodeEscaped struct{}

// Encode appends the escaped value, which is a string.
func (encodeEscaped) Encode(value any, buf []byte) ([]byte, error) {
	s, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("encode %T as text", value)
	}
	return append(buf, escape(s)...), nil
}

// PlanScan undoes the escapes of strings.
func (c escapedText) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*string); ok {
		return scanEscaped{}
	}
	return c.TextCodec.PlanScan(m, oid, format, target)
}

type scanEscaped struct{}

// Scan reads src into dst, which is a *string.
func (scanEscaped) Scan(src []byte, dst any) error {
	s, ok := dst.(*string)
	if !ok || src == nil {
		return fmt.Errorf("scan text into %T (NULL: %v)", dst, src == nil)
	}
	*s = unescape(string(src))
	return nil
}
