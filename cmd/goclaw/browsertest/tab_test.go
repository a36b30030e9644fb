package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds one wait. It is no measure of speed: all that is waited for
// comes in moments, or never.
const patience = 90 * time.Second

// tab is one page of a browser that knows of no other test.
type tab struct {
	t    *testing.T
	site *site
	ctx  context.Context

	mu       sync.Mutex
	problems []string
	expected []string // parts of the problems that the test is about
}

// tab opens an empty page of a fresh browser profile.
func (s *site) tab() *tab {
	s.t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &tab{t: s.t, site: s, ctx: ctx}
	s.t.Cleanup(func() {
		p.verdict()
		cancel()
	})
	if err := chromedp.Listen(ctx, p.watch); err != nil {
		s.t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		s.t.Fatal(err)
	}
	p.size(1280, 800)
	return p
}

// signedIn opens the page at a place, signed in by a link.
func (s *site) signedIn(place string) *tab {
	s.t.Helper()
	p := s.tab()
	p.open(s.run("page"))
	p.until(`document.querySelector(".lamp.open")`)
	if place != "" {
		p.visit(place)
	}
	return p
}

// watch notes what must not happen.
func (p *tab) watch(ev any) {
	var problem string
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err == nil && (u.Scheme == "data" || u.Scheme == "about" || "http://"+u.Host == p.site.url) {
			return
		}
		problem = "request to another host: " + e.Request.URL
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		problem = fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		problem = "console:"
		for _, a := range e.Args {
			problem += " " + a.Description + string(a.Value)
		}
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// expect names a problem that the test causes on purpose.
func (p *tab) expect(part string) { p.expected = append(p.expected, part) }

func (p *tab) verdict() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		known := false
		for _, part := range p.expected {
			known = known || strings.Contains(problem, part)
		}
		if !known {
			p.t.Error(problem)
		}
	}
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// scheme makes the system's colours light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) open(address string) {
	p.t.Helper()
	p.do(chromedp.Navigate(address))
}

// visit goes to a place of the page.
func (p *tab) visit(place string) {
	p.t.Helper()
	p.js(`location.hash = ` + quoted("#/"+place))
}

// js evaluates an expression; what it comes to is its text.
func (p *tab) js(expression string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience+10*time.Second)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string](`Promise.resolve(`+expression+`).then((v) => v === undefined || v === null || v === false ? "" : String(v))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// until waits until an expression holds, and returns what it comes to.
func (p *tab) until(expression string) string {
	p.t.Helper()
	out := p.js(fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d;
		const look = () => {
			let v;
			try { v = %s } catch { v = false }
			if (v) done(v); else if (Date.now() > end) done(""); else setTimeout(look, 20);
		};
		look();
	})`, patience.Milliseconds(), expression))
	if out == "" {
		p.shot(filepath.Join(os.TempDir(), "goclaw-failed.png"))
		p.t.Fatalf("never came to hold: %s\nthe page says (picture: goclaw-failed.png in the temporary folder):\n%s", expression, p.js(`document.body.innerText`))
	}
	return out
}

// shows waits until a text is to be seen.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.until(`document.querySelector("main").innerText.includes(` + quoted(text) + `)`)
}

// click clicks what a selector finds, as soon as a mouse could.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.press(`document.querySelector(` + quoted(selector) + `)`)
}

// clickOn clicks the button or link that has this text.
func (p *tab) clickOn(text string) {
	p.t.Helper()
	p.press(`[...document.querySelectorAll("dialog[open] button, dialog[open] a")].concat([...document.querySelectorAll("button, a")]).find((e) => e.innerText.trim() === ` + quoted(text) + ` || e.ariaLabel === ` + quoted(text) + `)`)
}

// press clicks what an expression finds.
func (p *tab) press(element string) {
	p.t.Helper()
	// It is looked for and clicked in one go: between two, what is live may move.
	p.until(`(() => {
		const e = ` + element + `;
		if (!e || e.disabled) return false;
		e.scrollIntoView({ block: "center" });
		const r = e.getBoundingClientRect();
		const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		if (!top || !(e.contains(top) || top.contains(e))) return false;
		e.focus();
		e.click();
		return true;
	})()`)
}

// keys types with the keyboard, wherever the focus is.
func (p *tab) keys(text string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(text))
}

// say writes a message in the chat and sends it.
func (p *tab) say(text string) {
	p.t.Helper()
	p.click(".composer textarea")
	p.keys(text + "\r")
}

func (p *tab) shot(path string) []byte {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
	return png
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string is always JSON
	return string(b)
}
