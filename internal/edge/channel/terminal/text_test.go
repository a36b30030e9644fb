package terminal

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ümläut 日本 👩‍👩‍👧\n": "plain ümläut 日本 👩‍👩‍👧\n",
		"a\tb\r\nc\rd":        "a    b\nc\nd",
		"\x1b[1;31mred\x1b[m": "red",
		"\x1b]0;title\x07x":   "x",
		"\x1b]8;;u\x1b\\link": "link",
		"\x1b]0;unended":      "0;unended",
		"\x1b(Bx\x1b=y\x1bcz": "xyz",
		"\x1b[31":             "",
		"\x1b[\x1b[31mx":      "x",
		"\x1b":                "",
		"\u009b31mx\u202ey":   "31mxy",
		"\xff\x9bz":           "\ufffd\ufffdz",
		"a\x00\x07\x08\x7fb":  "ab",
		"\ufefftext":          "text",
		"tab\x1b\tx":          "tab    x",
		"\x1bPq" + strings.Repeat("#", maxSequence) + "\x1b\\x": "q" + strings.Repeat("#", maxSequence) + "x",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b[]P\\\a;m0\u009b\n\t\r")))).Draw(t, "in")
		out := clean(in)
		if strings.ContainsFunc(out, steers) {
			t.Fatalf("clean(%q) = %q", in, out)
		}
		if again := clean(out); again != out {
			t.Fatalf("clean is not idempotent on %q: %q, then %q", in, out, again)
		}
	})
}

func plainText(lines []line) string {
	var out []string
	for _, l := range lines {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(s.text)
		}
		out = append(out, b.String())
	}
	return strings.Join(out, "\n")
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 8, "one two\nthree"},
		{"abcdefghij kl", 4, "abcd\nefgh\nij\nkl"},
		{"  keep\n  indent", 20, "  keep\n  indent"},
		{"a\n\nb", 5, "a\n\nb"},
		{"日本語テキスト", 6, "日本語\nテキス\nト"},
		{"日本語", 1, "日\n本\n語"},
		{"ab 🌊🌊 c", 5, "ab 🌊\n🌊 c"},
		{"trail   ", 5, "trail"},
		{"a            b", 4, "a\nb"},
	} {
		if got := plainText(wrap(ansi.GraphemeWidth, c.width, span{text: c.in})); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
	if got := plainText(chop(ansi.WcWidth, 4, span{text: "ab  cdef\ng"})); got != "ab  \ncdef\ng" {
		t.Errorf("chop: %q", got)
	}
	styled := wrap(ansi.WcWidth, 5, span{"one ", bold}, span{"two", dim})
	if got := styled[0].String() + "|" + styled[1].String(); got != "\x1b[1mone\x1b[m|\x1b[2mtwo\x1b[m" {
		t.Errorf("styles over a break: %q", got)
	}
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"entities", "a &amp; b \\*c\\* &#27;[31m", "a & b *c* [31m"},
		{"breaks", "one\ntwo  \nthree", "one\ntwo\nthree"},
		{"links", "[x](http://a.b) <http://c.d> [http://e](http://e) ![alt](p.png)", "x (http://a.b) http://c.d http://e\nimage: alt (p.png)"},
		{"loose list", "- a\n\n- b", "• a\n\n• b"},
		{"empty item", "-\n- b", "• \n• b"},
		{"task list", "- [x] done", "• [x] done"},
		{"start", "7) a\n8) b", "7) a\n8) b"},
		{"html", "<div>\nx\n</div>\n\na <b>c</b>", "│ <div>\n│ x\n│ </div>\n\na <b>c</b>"},
		{"code", "    indented\n    code", "│ indented\n│ code"},
		{"code keeps markup", "```\n**a** &amp;\n```", "│ **a** &amp;"},
		{"rule", "a\n\n---\n\nb", "a\n\n" + strings.Repeat("─", 40) + "\n\nb"},
		{"table", "|a|b|\n|-|:-:|\n|`x` |long \\| er|\n|1|", "a │ b\n──┼──────────\nx │ long | er\n1 │ "},
		{"no table", "a | b\n\n- | -", "a | b\n\n• | -"},
		{"unfinished", "**bold and `code", "**bold and `code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range newMarkdown(ansi.WcWidth).render(c.in, 40) {
				got = append(got, strings.TrimRight(plainText([]line{l}), " "))
			}
			var want []string
			for l := range strings.SplitSeq(c.want, "\n") {
				want = append(want, strings.TrimRight(l, " "))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

func TestMarkdownFits(t *testing.T) {
	md := newMarkdown(ansi.GraphemeWidth)
	pieces := []string{"# ", "- ", "> ", "1. ", "```\n", "\n", "\n\n", "|", "---", "**", "_", "`", "[a](b)", "<x>", "日本", "👩‍👩‍👧", "word ", "    ", "longerword", "&#27;", "\x1b["}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
		width := rapid.IntRange(8, 60).Draw(t, "width")
		for _, l := range md.render(in, width) {
			if got := l.width(ansi.GraphemeWidth); got > width {
				t.Fatalf("%q at %d gives a line of %d cells: %q", in, width, got, l)
			}
			for _, s := range l {
				if strings.ContainsFunc(s.text, steers) {
					t.Fatalf("%q gives %q", in, s.text)
				}
			}
		}
	})
}

func TestDeepNesting(t *testing.T) {
	md := newMarkdown(ansi.WcWidth)
	for _, in := range []string{strings.Repeat("> ", 2000) + "x", strings.Repeat("- ", 500) + "x", strings.Repeat("*", 5000) + "x"} {
		if len(md.render(in, 40)) == 0 {
			t.Errorf("%.10q… renders as nothing", in)
		}
	}
	if got := md.render(strings.Repeat("*a* ", maxMarkdown/4+1), 40); !strings.HasPrefix(plainText(got), "*a*") {
		t.Error("a very long text is shown as it is")
	}
}

func TestEditor(t *testing.T) {
	const family = "👩‍👩‍👧"
	for _, c := range []struct {
		name, in string
		keys     []string
		want     string // | is the cursor
	}{
		{"cluster", "a" + family + "b", []string{"left", "backspace"}, "a|b"},
		{"right over a cluster", family + "b", []string{"home", "right"}, family + "|b"},
		{"accent", "e\u0301x", []string{"left", "left"}, "|e\u0301x"},
		{"lines", "one\ntwo", []string{"home", "left", "backspace"}, "on|\ntwo"},
		{"words", "one two  three", []string{"alt+b", "ctrl+w"}, "one |three"},
		{"word right", "one two", []string{"home", "alt+f", "alt+d"}, "one|"},
		{"kill", "one two\nthree", []string{"alt+left", "ctrl+u", "left", "left", "ctrl+k"}, "one tw|\nthree"},
		{"delete", "日本", []string{"home", "delete"}, "|本"},
		{"newline", "ab", []string{"left", "ctrl+j"}, "a\n|b"},
		{"nothing to do", "", []string{"left", "right", "backspace", "delete", "ctrl+w", "alt+d"}, "|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e editor
			e.set(c.in)
			for _, k := range c.keys {
				if !e.key(k) {
					t.Errorf("%s is no key", k)
				}
			}
			if got := e.text[:e.pos] + "|" + e.text[e.pos:]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEditorRows(t *testing.T) {
	var e editor
	e.set("abcdef\n日本語\n\nend")
	rows := e.rows(ansi.WcWidth, 4)
	var got []string
	for _, r := range rows {
		got = append(got, e.text[r.start:r.end])
	}
	if strings.Join(got, "|") != "abcd|ef|日本|語||end" {
		t.Errorf("rows %q", got)
	}
	for _, want := range []string{"日本語\n|\n", "日本|語\n"} {
		e.vertical(ansi.WcWidth, 4, -1)
		if at := e.text[:e.pos] + "|" + e.text[e.pos:]; !strings.Contains(at, want) {
			t.Errorf("up: %q, want %q", at, want)
		}
	}
}

func TestEditorProperties(t *testing.T) {
	keys := []string{"left", "right", "home", "end", "backspace", "delete", "ctrl+w", "alt+d", "ctrl+u", "ctrl+k", "ctrl+j", "alt+b", "alt+f"}
	rapid.Check(t, func(t *rapid.T) {
		var e editor
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "type") {
				e.insert(rapid.SampledFrom([]string{"a", " ", "é", "\u0301", "日", "👩", "\u200d", "🇫", "\n"}).Draw(t, "text"))
			} else if k := rapid.SampledFrom(append(keys, "up", "down")).Draw(t, "key"); !e.key(k) {
				e.vertical(ansi.WcWidth, 5, map[string]int{"up": -1, "down": 1}[k])
			}
			rows := e.rows(ansi.WcWidth, 5)
			y, x := e.cursor(ansi.WcWidth, 5, rows)
			if e.pos < 0 || e.pos > len(e.text) || y > len(rows) || x >= 5 && x > 0 {
				t.Fatalf("cursor %d of %q is shown at %d,%d", e.pos, e.text, x, y)
			}
		}
	})
}

func TestRecall(t *testing.T) {
	s := newTest(40, 12, Options{})
	for _, m := range []string{"one", "two", "two"} {
		s.recall.add(m)
	}
	s.paste("draft")
	press(s, "up")
	if press(s, "up", "up"); s.editor.text != "one" {
		t.Errorf("the oldest is %q", s.editor.text)
	}
	if press(s, "down", "down", "down"); s.editor.text != "draft" {
		t.Errorf("what was being written is %q", s.editor.text)
	}
}

func TestShortNames(t *testing.T) {
	for in, want := range map[string]string{
		"anthropic/claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "gpt-5": "gpt-5", "": "",
		"openrouter/meta/llama-3": "llama-3", "x/model-1234567a": "model-1234567a",
	} {
		if got := shortModel(in); got != want {
			t.Errorf("shortModel(%q) = %q, want %q", in, got, want)
		}
	}
}
