package browsertest

import (
	"encoding/json"
	"strings"
	"testing"
)

// hostile is what a model, a tool or a file may say that should do nothing but
// be read.
var hostile = []string{
	"<script>window.hacked = 'script'</script>",
	"<img src=x onerror=\"window.hacked='img'\">",
	"<a href=\"javascript:window.hacked='raw'\">raw</a>",
	"[link](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=2</script>) [vb](vbscript:x) [file](file:///etc/passwd)",
	"[tricky](  JaVaScRiPt:window.hacked=3) <javascript:window.hacked=4>",
	"![picture](https://example.invalid/pixel.png)",
	"</textarea></script><style>body{display:none}</style><meta http-equiv=refresh content=\"0;url=https://example.invalid\">",
	"<iframe src=\"https://example.invalid\"></iframe><svg onload=\"window.hacked=5\"><form action=\"https://example.invalid\"><button>go</button></form>",
	"\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07 null\x00 nbsp\u00a0",
	"user\u202egnp.exe and \u2066isolated\u2069 text",
	"constructor __proto__ toString hasOwnProperty {{base}} ${window.hacked=6}",
	strings.Repeat("long", 5000),
	"`" + strings.Repeat("x", 3000) + "`",
	"[good](https://example.com/a?b=c&d=e) and <b>bold</b> &lt;kept&gt; &amp;",
}

func TestHostileContent(t *testing.T) {
	all := strings.Join(hostile, "\n\n")
	said, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, `[
	 {"match": {"role": "main", "hasToolResult": false, "contains": "begin"}, "answer": {"thinking": `+string(said)+`, "text": `+string(said)+`, "calls": [
	   {"name": "read", "arguments": {"path": "hostile.txt"}},
	   {"name": "sessions_spawn", "arguments": {"task": `+string(said)+`, "label": "<img src=x onerror=alert(1)>\u202egnp"}}]}},
	 {"answer": {"text": `+string(said)+`}}]`)
	s.file("hostile.txt", all)
	p := s.signedIn("chat")
	p.say("begin <script>window.hacked='me'</script>")
	p.until(`document.querySelectorAll(".worker.completed").length === 1 && document.querySelectorAll(".turn > .md").length >= 2 && !document.querySelector(".under-way")`)
	for range 3 { // folds in folds
		p.js(`document.querySelectorAll("main .foldhead[aria-expanded=false]").forEach((b) => b.click())`)
	}
	p.until(`document.querySelector(".call .foldbody pre") && document.querySelector(".thought .foldbody pre")`)
	harmless(p, "chat")
	if got := p.js(`document.querySelectorAll('.md a[href="https://example.com/a?b=c&d=e"][rel~=noopener]').length`); got == "0" {
		t.Error("the good link is no link")
	}
	if got := p.js(`document.querySelector(".turn > .md").innerText`); !strings.Contains(got, "<script>window.hacked") || !strings.Contains(got, "<b>bold</b> <kept> &") ||
		!strings.Contains(got, "user⟨U+202E⟩gnp.exe") || strings.Contains(got, "[31m") {
		t.Errorf("the text is not what was said:\n%.600s", got)
	}

	p.visit("runs")
	p.until(`document.querySelectorAll(".row.l2").length >= 1`)
	harmless(p, "runs")
	p.js(`document.querySelector(".row.l2 .what a").click()`)
	p.until(`document.querySelectorAll(".step").length >= 3`)
	p.js(`document.querySelectorAll(".step > button").forEach((b) => b.click())`)
	p.until(`document.querySelectorAll(".step .detail").length >= 3`)
	harmless(p, "run")
	p.clickOn("Run again…")
	p.until(`document.querySelector("dialog textarea")?.value.includes("<script>")`)
	harmless(p, "form")
}

// harmless looks for what hostile text might have become.
func harmless(p *tab, where string) {
	p.t.Helper()
	if got := p.js(`window.hacked ?? ""`); got != "" {
		p.t.Errorf("%s: code ran: %s", where, got)
	}
	const markup = `[...document.querySelectorAll("#app script, #app iframe, #app img, #app form[action], #app style, #app meta, #app object, #app embed, #app [onerror], #app [onload], #app a")]
		.filter((e) => e.tagName !== "A" || !/^(https?:|mailto:)/.test(e.href)).map((e) => e.outerHTML.slice(0, 120)).join("\n")`
	if got := p.js(markup); got != "" {
		p.t.Errorf("%s: text became markup: %s", where, got)
	}
	if got := p.js(`document.documentElement.scrollWidth > innerWidth || document.querySelector("main").scrollWidth > document.querySelector("main").clientWidth + 1`); got == "true" {
		p.t.Errorf("%s: a long line makes the page wider: %s", where, p.js(`[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .pre")).slice(0, 3).map((e) => e.outerHTML.slice(0, 150)).join("\n")`))
	}
}
