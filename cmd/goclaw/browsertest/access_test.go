package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// places are all views.
var places = []string{"chat", "runs", "definitions", "cron", "usage", "usage?by=model", "parked", "memory", "status"}

// inUse is a gateway with something to see in most views.
func inUse(t *testing.T) (s *site, worker string) {
	t.Helper()
	s = newSite(t, fiveWorkers)
	s.run("run", "Spawn five workers")
	var runs []struct {
		ID string `json:"runId"`
	}
	s.api("GET", "/api/runs?trigger=spawn&limit=1", nil, &runs)
	if len(runs) != 1 {
		t.Fatalf("%d workers", len(runs))
	}
	return s, runs[0].ID
}

func TestPhone(t *testing.T) {
	s, worker := inUse(t)
	p := s.signedIn("chat")
	p.size(360, 740)
	at := append([]string{"runs/" + worker, "runs/" + worker + "/prompt", "runs/" + worker + "/family"}, places...)
	for _, place := range at {
		p.visit(place)
		p.until(`document.querySelector("main h1") && !document.querySelector("main").innerText.includes("Loading…")`)
		if got := p.js(`document.documentElement.scrollWidth`); got != "360" {
			t.Errorf("%s is %s wide", place, got)
		}
		const wide = `[...document.querySelectorAll("main *")].filter((e) => {
			let right = e.getBoundingClientRect().right;
			for (let a = e.parentElement; a; a = a.parentElement) if (getComputedStyle(a).overflowX !== "visible") right = Math.min(right, a.getBoundingClientRect().right);
			return right > innerWidth + 1;
		}).slice(0, 3).map((e) => e.outerHTML.slice(0, 160)).join("\n")`
		if got := p.js(wide); got != "" {
			t.Errorf("%s: beyond the edge: %s", place, got)
		}
		if got := p.js(`[...document.querySelectorAll("main button, main a.button")].filter((e) => { const r = e.getBoundingClientRect(); return r.width && r.right > innerWidth }).length`); got != "0" && !strings.Contains(place, "usage") {
			t.Errorf("%s: %s buttons can't be reached", place, got)
		}
	}
	p.visit("runs/" + worker + "/prompt")
	p.press(`[...document.querySelectorAll(".sections .foldhead")].find((e) => e.innerText.startsWith("Tools"))`)
	p.until(`(() => { const tools = [...document.querySelectorAll(".sections .foldbody .foldhead")]; return tools.length > 3 && tools.every((e) => e.innerText.trim()) })()`)
	p.visit("chat")
	p.say("hello from a phone")
	p.until(`[...document.querySelectorAll(".turn .md")].at(-1).innerText.includes("hello from a phone")`)
	p.js(`document.querySelector('nav a[href="#/runs"]').click()`)
	p.until(`document.querySelector(".row.l2")`)
}

// Between a phone and a desktop the names of runs stay, and nothing lies over
// anything else.
func TestTablet(t *testing.T) {
	s, worker := inUse(t)
	p := s.signedIn("runs")
	p.size(768, 1024)
	p.until(`document.querySelectorAll(".row.l2").length === 6 && document.querySelector(".nav").offsetWidth < 100`)
	if got := p.js(`[...document.querySelectorAll(".row:not(.head)")].filter((row) => {
		const what = row.querySelector(".what"), state = row.querySelector(".st").getBoundingClientRect();
		return what.querySelector("a").offsetWidth < 30 || [...what.children].some((e) => e.getBoundingClientRect().right > state.left);
	}).map((row) => row.innerText).join("\n")`); got != "" {
		t.Errorf("rows that can't be read: %s", got)
	}
	p.visit("runs/" + worker)
	p.until(`document.querySelectorAll(".axis .scale span").length > 1`)
	if got := p.js(`(() => {
		const ticks = [...document.querySelectorAll(".axis .scale span")].map((e) => e.getBoundingClientRect()).filter((r) => r.width);
		return ticks.some((r, i) => i && r.left < ticks[i - 1].right);
	})()`); got != "" {
		t.Error("the times of the axis lie over each other")
	}
}

// On paper there is what one reads, all of it.
func TestPrint(t *testing.T) {
	s, _ := inUse(t)
	p := s.signedIn("chat")
	p.until(`document.querySelector(".turn .md")`)
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	p.until(`[".nav", ".composer", ".chooser + button"].every((s) => !document.querySelector(s).getClientRects().length)`)
	p.until(`[...document.querySelectorAll(".talk, .view, .stage")].every((e) => getComputedStyle(e).overflowY === "visible" && e.scrollHeight <= e.offsetHeight + 1)`)
}

// All that has a role has a name, too.
func TestNames(t *testing.T) {
	s, worker := inUse(t)
	p := s.signedIn("chat")
	needsName := map[string]bool{"button": true, "link": true, "textbox": true, "searchbox": true, "combobox": true, "image": true, "navigation": true, "treegrid": true, "table": false, "dialog": true}
	for _, place := range append([]string{"runs/" + worker, "runs/" + worker + "/prompt"}, places...) {
		p.visit(place)
		p.until(`document.querySelector("main h1") && !document.querySelector("main").innerText.includes("Loading…")`)
		if got := p.js(`document.querySelectorAll("main").length + " " + document.querySelectorAll("nav[aria-label]").length + " " + document.querySelectorAll("h1").length`); !strings.HasPrefix(got, "1 ") || !strings.HasSuffix(got, " 1") {
			t.Errorf("%s: landmarks and headings: %s", place, got)
		}
		tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, n := range tree.Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			role := strings.Trim(string(n.Role.Value), `"`)
			if !needsName[role] {
				continue
			}
			seen++
			if n.Name == nil || strings.Trim(string(n.Name.Value), `" `) == "" {
				t.Errorf("%s: a %s has no name (node %d)", place, role, n.BackendDOMNodeID)
			}
		}
		if seen < 10 {
			t.Errorf("%s: only %d things have a role", place, seen)
		}
	}
}

func TestKeyboardOnly(t *testing.T) {
	s, _ := inUse(t)
	p := s.signedIn("status")
	p.shows("Kill switch")

	// Every stop of a whole round is visible, and the round ends.
	p.js(`(() => { document.activeElement.blur() })()`)
	stops, ends, hidden := 0, 0, ""
	for ends < 2 && stops < 60 {
		p.keys(tabKey)
		got := p.js(`(() => { const e = document.activeElement; if (e === document.body) return "body"; const s = getComputedStyle(e); return s.outlineStyle !== "none" || s.boxShadow !== "none" ? "ok" : e.outerHTML.slice(0, 100) })()`)
		switch got {
		case "body":
			ends++ // and then from the beginning
			continue
		case "ok":
		default:
			hidden += got + "\n"
		}
		stops++
	}
	if stops < 12 || stops >= 60 || hidden != "" {
		t.Errorf("%d stops; without a visible focus:\n%s", stops, hidden)
	}

	p.js(`(() => { document.activeElement.blur() })()`)
	p.keys("?")
	p.until(`document.querySelector("dialog[open] h2")?.innerText === "Keyboard"`)
	p.keys(escape)
	p.until(`!document.querySelector("dialog")`)
	p.keys("gr")
	p.until(`document.querySelectorAll(".row.l2").length === 6`)
	p.keys(arrowDown + arrowDown) // the first key goes into the tree
	p.until(`document.activeElement.matches(".row.l2")`)
	p.keys(arrowLeft) // to the top of the tree
	p.until(`document.activeElement.matches(".row.l1[aria-expanded=true]")`)
	p.keys(arrowLeft)
	p.until(`document.querySelectorAll(".row.l2").length === 0 && document.activeElement.matches(".row.l1[aria-expanded=false]")`)
	p.keys(arrowRight + arrowDown)
	p.until(`document.activeElement.matches(".row.l2")`)
	p.keys("\r")
	p.until(`document.querySelector(".runhead h1")?.innerText.startsWith("chapter-")`)
	p.keys("a")
	p.until(`document.querySelector("dialog[open] textarea") === document.activeElement`)
	p.keys(escape)
	p.until(`!document.querySelector("dialog")`)
	p.keys("gc")
	p.until(`document.querySelector(".composer textarea")`)
	p.keys(escape) // where a mouse is, the field has the focus at once
	p.until(`!document.activeElement.matches("textarea")`)
	p.keys("/")
	p.until(`document.activeElement.matches(".composer textarea")`)
	p.keys("hello without a mouse\r")
	p.until(`[...document.querySelectorAll(".turn .md")].at(-1).innerText.includes("hello without a mouse")`)
	p.keys(escape + "t")
	p.until(`document.documentElement.dataset.theme === "light"`)
	p.keys("t")
	p.until(`document.documentElement.dataset.theme === "dark" && localStorage.getItem("theme") === "dark"`)
}
