package browsertest

import (
	"net/url"
	"strings"
	"testing"
)

// fiveWorkers spawns five workers, each of which reads a file and answers.
const fiveWorkers = `[
 {"match": {"role": "main", "contains": "five", "hasToolResult": false}, "answer": {"thinking": "Five at once.", "text": "Starting five workers.", "calls": [
  {"name": "sessions_spawn", "arguments": {"task": "Count the lines of chapter 1", "label": "chapter-1"}},
  {"name": "sessions_spawn", "arguments": {"task": "Count the lines of chapter 2", "label": "chapter-2"}},
  {"name": "sessions_spawn", "arguments": {"task": "Count the lines of chapter 3", "label": "chapter-3"}},
  {"name": "sessions_spawn", "arguments": {"task": "Count the lines of chapter 4", "label": "chapter-4"}},
  {"name": "sessions_spawn", "arguments": {"task": "Count the lines of chapter 5", "label": "chapter-5"}}]}},
 {"match": {"role": "main", "contains": "accepted", "hasToolResult": true}, "answer": {"text": "Five workers are **under way**."}},
 {"match": {"role": "worker", "hasToolResult": false}, "answer": {"delayMs": 1200, "calls": [{"name": "read", "arguments": {"path": "AGENTS.md"}}, {"name": "ls", "arguments": {"path": "."}}]}},
 {"match": {"role": "worker"}, "answer": {"delayMs": 800, "text": "42 lines. ({{task}})", "chunkDelayMs": 60}},
 {"match": {"contains": "[Subagent: "}, "answer": {"text": "All five have **42 lines**.\n\n| chapter | lines |\n|---|---:|\n| 1 | 42 |\n| 2 | 42 |\n| 3 | 42 |\n| 4 | 42 |\n| 5 | 42 |\n"}},
 {"match": {"contains": "slowly"}, "answer": {"text": "One two three four five six seven eight nine ten eleven twelve, **done** at last.", "chunkDelayMs": 120}},
 {"match": {"contains": "in the note", "hasToolResult": false}, "answer": {"calls": [{"name": "read", "arguments": {"path": "note.txt"}}]}},
 {"match": {"contains": "buy more sheep"}, "answer": {"text": "It says to buy sheep."}},
 {"match": {"contains": "please hang"}, "answer": {"delayMs": 600000, "text": "never"}},
 {"answer": {"text": "You said: {{task}}"}}
]`

func TestSignIn(t *testing.T) {
	s := newSite(t, fiveWorkers)
	link := s.run("page")
	stranger := s.tab()
	stranger.expect("401") // that is what it is about
	stranger.open(s.url)
	stranger.until(`document.body.innerText.includes("goclaw page") && getComputedStyle(document.querySelector("main")).display === "grid"`)
	if got := stranger.js(`document.scripts.length`); got != "0" {
		t.Errorf("the page for strangers has %s scripts", got)
	}

	p := s.tab()
	p.open(link)
	p.until(`document.querySelector(".lamp.open")`)
	if got := p.js(`location.pathname + location.search`); got != "/" {
		t.Errorf("after signing in the address is %s", got)
	}
	if got := p.js(`document.cookie`); got != "" {
		t.Errorf("scripts can read the cookie %q", got)
	}
	p.open(s.url) // stays signed in
	p.until(`document.querySelector(".lamp.open")`)

	stranger.open(link) // works once
	stranger.until(`document.body.innerText.includes("goclaw page")`)
	if strings.Contains(stranger.js(`document.body.innerHTML`), "composer") {
		t.Error("the link worked twice")
	}
}

// Who signs out, or whose token was changed, is told so and can't go on.
func TestSignOut(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p, other := s.signedIn("status"), s.signedIn("chat")
	p.expect("401")
	p.clickOn("Sign out")
	p.until(`document.querySelector("h1").innerText === "Signed out"`)
	p.open(s.url)
	p.until(`document.body.innerText.includes("goclaw page") && !document.querySelector(".lamp")`)

	other.until(`document.querySelector(".lamp.open")`) // another browser's session goes on
	other.expect("401")
	other.expect("ERR_INCOMPLETE_CHUNKED_ENCODING")
	s.run("token", "rotate")
	other.until(`document.querySelector("h1").innerText === "Signed out"`)
	other.open(s.run("page"))
	other.until(`document.querySelector(".lamp.open")`)
}

func TestConversations(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("chat")
	p.say("first")
	p.until(`document.querySelectorAll(".turn .facts").length === 1`)
	p.clickOn("New conversation")
	p.until(`document.activeElement.closest("dialog")`)
	p.keys("Überblick: 100%\r")
	p.until(`!document.querySelector("dialog") && document.querySelector(".chooser select").selectedOptions[0].innerText === "api · Überblick: 100%"`)
	p.shows("Nothing was said here yet.")
	p.say("second")
	p.until(`document.querySelector(".turn .md")?.innerText.endsWith("second") && document.querySelectorAll(".turn .facts").length === 1`)

	// Another tab finds it in its list; there and back again.
	other := s.signedIn("chat")
	other.shows("first")
	key := other.until(`[...document.querySelectorAll(".chooser option")].find((o) => o.innerText.startsWith("api · Überblick: 100% · 1 turn"))?.value`)
	other.visit("chat/" + url.PathEscape(key))
	other.until(`document.querySelector(".you")?.innerText === "second"`)

	// Both ways to start over leave nothing of before.
	p.say("/new")
	p.until(`document.querySelectorAll(".you").length === 1 && document.querySelector(".aside")?.innerText.startsWith("New conversation.")`)
	p.visit("chat/agent:main:main")
	p.until(`document.querySelector(".you")?.innerText === "first"`)
	p.clickOn("New conversation")
	p.clickOn("Start main over")
	p.shows("Nothing was said here yet.")
}

func TestCopyCode(t *testing.T) {
	s := newSite(t, `[{"answer": {"text": "Here:\n\n`+"```go\\nfmt.Println(1)\\n```"+`\n"}}]`)
	p := s.signedIn("chat")
	// The real clipboard is the whole machine's. What a button says, it says for
	// a moment only: it is noted.
	p.js(`(() => {
		navigator.clipboard.writeText = async (text) => { window.copied = text };
		window.told = [];
		new MutationObserver(() => document.querySelectorAll(".copy span").forEach((e) => { if (e.innerText) told.push(e.innerText) })).observe(document.body, { subtree: true, childList: true, characterData: true });
	})()`)
	p.say("write code")
	p.until(`document.querySelector(".turn .facts")`) // on record: what streams is drawn anew then
	p.clickOn("Copy the code")
	p.until(`told.includes("Copied") && copied === "fmt.Println(1)\n"`)
	p.clickOn("Copy the reply")
	p.until(`copied.startsWith("Here:")`)
	// Where there is no clipboard, one key is left to press.
	p.js(`(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("no")) })()`)
	p.clickOn("Copy the code")
	p.until(`told.includes("Selected") && String(getSelection()).trim() === "fmt.Println(1)"`)
}

func TestChatStreams(t *testing.T) {
	s := newSite(t, fiveWorkers)
	s.file("note.txt", "buy more sheep\n")
	p := s.signedIn("chat")
	p.shows("Nothing was said here yet.")
	s.gate.shut("twelve")
	p.say("Tell me slowly")
	// The text is there before its end is.
	p.until(`document.querySelector(".under-way .md")?.innerText.includes("nine ten")`)
	s.gate.release()
	p.until(`document.querySelector(".turn .md strong")?.innerText === "done" && !document.querySelector(".under-way")`)
	p.until(`document.querySelectorAll(".turn .md").length === 1`)

	p.say("What is in the note?")
	p.until(`document.querySelectorAll(".call").length === 1`)
	p.shows("It says to buy sheep.")
	if got := p.js(`document.querySelector(".call .foldhead").getAttribute("aria-expanded")`); got != "false" {
		t.Errorf("the call is not folded: %q", got)
	}
	p.click(".call .foldhead")
	p.until(`document.querySelector(".call .foldbody").innerText.includes('"path": "note.txt"') && document.querySelector(".call .foldbody").innerText.includes("buy more sheep")`)

	// A reader who has scrolled up is left alone.
	p.size(1280, 420)
	// Until the new size has settled, the end is kept in view.
	p.until(`(() => { document.querySelector(".talk").scrollTop = 0; return document.querySelector(".latest") })()`)
	s.gate.shut("twelve")
	p.say("Tell me slowly once more")
	p.until(`document.querySelector(".latest") === null`) // saying something goes to the end
	p.until(`document.querySelector(".under-way .md")?.innerText.includes("nine ten")`)
	p.js(`(() => { document.querySelector(".talk").scrollTop = 0 })()`)
	p.until(`document.querySelector(".latest")`)
	s.gate.release()
	p.until(`!document.querySelector(".under-way") && document.querySelectorAll(".you").length === 3`)
	if got := p.js(`document.querySelector(".talk").scrollTop`); got != "0" {
		t.Errorf("the page moved under its reader, to %s", got)
	}
}

func TestCommandsDraftsHistory(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("chat")
	p.click(".composer textarea")
	p.keys("/sta")
	p.until(`document.querySelector(".choices li[aria-selected=true] code")?.innerText === "/status"`)
	p.keys("\r")
	p.until(`document.querySelector(".aside")?.innerText.includes("exec sandbox")`)

	p.say("first words")
	p.until(`document.querySelector(".turn .facts")`)
	p.keys("a draft")
	p.visit("status")
	p.shows("Kill switch")
	p.visit("chat")
	p.until(`document.querySelector(".composer textarea")?.value === "a draft"`)
	p.js(`document.querySelector(".composer textarea").select()`)
	p.keys("\b")
	p.until(`document.querySelector(".composer textarea").value === ""`)
	p.keys(arrowUp)
	p.until(`document.querySelector(".composer textarea").value === "first words"`)
	p.keys(arrowUp)
	p.until(`document.querySelector(".composer textarea").value === "/status"`)
	p.keys(arrowDown)
	p.until(`document.querySelector(".composer textarea").value === "first words"`)
}

func TestStopATurn(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("chat")
	p.say("please hang")
	p.clickOn("Stop the turn")
	p.shows("Stopped")
	p.until(`!document.querySelector(".round.stop")`)
}

func TestDemoIsLabelled(t *testing.T) {
	p := newSite(t, "").signedIn("chat")
	p.until(`document.querySelector(".banner.demo")?.innerText.includes("Demo model") && document.querySelector(".bar .tag.demo")`)
}
