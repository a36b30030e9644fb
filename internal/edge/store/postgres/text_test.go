package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestEscape returns any bytes as they were, through text that PostgreSQL
// takes.
func TestEscape(t *testing.T) {
	parts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x00", "\x1a", "\x1a00", "\xff", "\x1aZZ", "\x1a1", "é\xc3"}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOf(parts).Draw(rt, "parts"), "")
		e := escape(s)
		if !utf8.ValidString(e) || strings.Contains(e, "\x00") {
			rt.Fatalf("%q is written as %q", s, e)
		}
		if back := unescape(e); back != s {
			rt.Fatalf("%q is written as %q and read as %q", s, e, back)
		}
	})
	for _, foreign := range []string{"\x1a", "\x1a0", "a\x1azz"} {
		if got := unescape(foreign); got != foreign {
			t.Errorf("%q, which nobody escaped, is read as %q", foreign, got)
		}
	}
}
