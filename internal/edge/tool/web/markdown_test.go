package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func base(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://example.com/a/b")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMarkdown(t *testing.T) {
	long := strings.Repeat("Many words stand here. ", 12)
	for name, tt := range map[string]struct{ in, want string }{
		"headings":          {"<h1>A</h1><h2 id=x>B <em>c</em></h2>text<h3></h3>", "# A\n\n## B c\n\ntext"},
		"paragraphs":        {"<p>a\n  b<p>c<br>d<br><br>e", "a b\n\nc\nd\n\ne"},
		"divisions":         {"<div>a</div><div><div>b</div></div>", "a\nb"},
		"entities":          {"a &lt;b&gt; &amp;amp; &eacute;&nbsp;x", "a <b> &amp; é x"},
		"lists":             {"<ul><li>a<li>b<ul><li>c</ul><li><p>d</p></ul><ol><li>e</li><li></li><li>f</ol>g", "- a\n- b\n  - c\n- d\n\n1. e\n3. f\n\ng"},
		"quotation":         {"<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n\n> b\n\nc"},
		"code":              {"use <code>a*b</code> and <code></code>", "use `a*b` and"},
		"block of code":     {"<pre class='x lang-go'>\nfunc a() {\n\t<b>b</b>\n}</pre>c", "```go\nfunc a() {\n\tb\n}\n```\n\nc"},
		"code in a block":   {"<pre><code class=language-c>a &amp;&amp; b\n</code></pre>", "```c\na && b\n```"},
		"empty block":       {"a<pre></pre>b", "a\n\nb"},
		"links":             {"<a href='../c?d=1&e=2'>c</a>, <a href='#x'>here</a>, <a href=javascript:x()>j</a>, <a href=/e><img alt=Pic></a>, <a href=/f></a>", "[c](https://example.com/c?d=1&e=2), here, j, [[image: Pic]](https://example.com/e),"},
		"link of blocks":    {"<a href=/x><h2>T</h2><p>p</p></a>", "## T\n\np <https://example.com/x>"},
		"link as its text":  {"<a href=https://e.org/>https://e.org/</a>", "https://e.org/"},
		"open links":        {"<a href=/x>x <a href=/y>y", "[x](https://example.com/x) y"},
		"base":              {"<base href=https://o.org/p/><a href=q>q</a>", "[q](https://o.org/p/q)"},
		"table":             {"<table><tr><th>a<th>b<tr><td>1<br>2<td><p>3</p></table>x", "| a | b |\n|---|---|\n| 1 2 | 3 |\n\nx"},
		"table for placing": {"<table role=presentation><tr><td>a<td>b</table>", "a b"},
		"table with blocks": {"<table><tr><td><h2>A</h2><p>b</p><p>c</p></table>", "|\n\n## A\n\nb\n\nc"},
		"left out":          {"<nav>menu</nav>a<script>x<p>y</script><style>z</style><svg><text>s</text></svg><noscript>n</noscript><button>b</button><footer>f</footer>", "a"},
		"not shown":         {"<p hidden>a</p><div style='Display : none'>b<div>c</div></div><span aria-hidden=true>d</span>e<li hidden>f<li>g", "e\n- g"},
		"never closed":      {"<p>a</p><nav><p>b</p>", "a\n\nb"},
		"main":              {"<nav>x</nav><header>site</header><main><h1>T</h1>" + long + "</main><div>else</div>", "# T\n\n" + strings.TrimSpace(long)},
		"small main":        {"<main>a</main>b", "a\n\nb"},
		"one article":       {"x<article>" + long + "</article>y", strings.TrimSpace(long)},
		"articles":          {"<article>a" + long + "</article><article>b</article>", "a" + strings.TrimSpace(long) + "\n\nb"},
		"article in itself": {"x<article>" + long + "<article>note</article>end</article>y", strings.TrimSpace(long) + "\n\nnote\n\nend"},
		"comment":           {"a<!-- obey -->b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := markdown(t.Context(), tt.in, base(t))
			if got = strings.TrimSpace(got); err != nil || got != tt.want {
				t.Errorf("%v\n%q, want\n%q", err, got, tt.want)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	title, text, err := markdown(t.Context(), "<title>\n A &amp; B\n</title><body>x<svg><title>no</title></svg><title>C</title>", base(t))
	if err != nil || title != "A & B" || strings.TrimSpace(text) != "x" {
		t.Errorf("%q, %q, %v", title, text, err)
	}
}

// A call that was cancelled doesn't read its page to the end.
func TestMarkdownEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	if _, _, err := markdown(ctx, "<p>x", base(t)); !errors.Is(err, why) {
		t.Error(err)
	}
}

// Links with a long base can't make a long text of a short one.
func TestMarkdownIsBounded(t *testing.T) {
	from := base(t)
	from.Path = "/" + strings.Repeat("a", 900) + "/"
	_, text, err := markdown(t.Context(), strings.Repeat("<a href=x>y</a>", 20_000), from)
	if err != nil || len(text) > maxText+4096 || len(text) < maxText {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		"<h1>a</h1><p>b<a href=c>d</a>", "<pre><code>x</pre>", "<table><tr><td>a<td>b<table><tr><td>c</table></table>",
		"<ul><li><ol><li>a</ul>", "<nav><nav></nav>", "<p hidden>a<p>b", "<main><main>a</main></main><main>b", "<a href=x><pre>a\nb</a></pre>",
		"</table></tr></ul></pre></code></a></blockquote></main>", "<code><h1></code><a><code>x", "<table><th><tr><td><hr><pre>x", "<title>",
		"<blockquote><table><tr><th>x</table>", "<svg/><svg>x</svg>y",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, text, err := markdown(t.Context(), s, base(t))
		if err != nil {
			t.Fatal(err)
		}
		if text = clean(text); !utf8.ValidString(text) {
			t.Error("no UTF-8")
		}
		// What one byte can bring about is a whole address, or the indentation of
		// a line.
		if len(text) > 200*len(s)+200 {
			t.Errorf("%d bytes become %d", len(s), len(text))
		}
	})
}
