package browsertest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	s := newSite(t, fiveWorkers)
	s.file("MEMORY.md", "# Facts\n\nThe boiler was repaired by Mrs Adebayo in March.\n")
	p := s.signedIn("memory")
	p.shows("What does the agent remember?")
	p.keys("/")
	p.until(`document.activeElement.matches("main input[type=search]")`)
	p.js(`document.activeElement.select()`) // the driver types the key that led here as well
	p.keys("who repaired the boiler\r")
	p.until(`document.querySelector(".hits li .snippet")?.innerText.includes("Mrs Adebayo") && document.querySelector(".hits code").innerText === "MEMORY.md"`)
	if got := p.js(`location.hash`); got != "#/memory?q=who+repaired+the+boiler" {
		t.Errorf("the address is %s", got)
	}
	p.js(`(() => { const f = document.querySelector("main input"); f.focus(); f.select() })()`)
	p.keys("xylophone\r")
	p.shows("Nothing in the memory answers this.")
}

// parks has two workers whose results can't be told, for the model refuses.
const parks = `[
 {"match": {"role": "worker"}, "answer": {"text": "a **result**"}},
 {"match": {"role": "main", "contains": "[Subagent: "}, "answer": {"fault": {"status": 401}}},
 {"match": {"role": "main", "hasToolResult": true}, "answer": {"text": "started"}},
 {"match": {"role": "main"}, "answer": {"calls": [
   {"name": "sessions_spawn", "arguments": {"task": "do one", "label": "one"}},
   {"name": "sessions_spawn", "arguments": {"task": "do two", "label": "two"}}]}}]`

func TestParked(t *testing.T) {
	s := newSite(t, parks)
	s.stop()
	s.configure(`{"agents": {"defaults": {"subagents": {"announceAttempts": 1}}}}`)
	s.start("127.0.0.1:0")
	p := s.signedIn("parked")
	p.shows("Nothing is parked.")
	s.say("agent:main:main", "go")
	p.until(`document.querySelectorAll("main .list > li").length === 2 && document.querySelector(".count.parked").innerText === "2"`) // nobody loaded the page again
	item := func(label string) string {
		return `[...document.querySelectorAll("main .list > li")].find((e) => e.querySelector("b").innerText === "Result of ` + label + `")`
	}
	p.until(item("one") + ` && ` + item("two"))
	p.press(item("one") + `.querySelector(".foldhead")`)
	p.until(item("one") + `.querySelector(".md strong")?.innerText === "result"`)

	// Dismissing is asked about; what is kept stays.
	p.press(`[...` + item("one") + `.querySelectorAll("button")].find((b) => b.innerText === "Dismiss…")`)
	p.clickOn("Keep it")
	p.until(`!document.querySelector("dialog") && ` + item("one"))
	p.press(`[...` + item("one") + `.querySelectorAll("button")].find((b) => b.innerText === "Dismiss…")`)
	p.clickOn("Dismiss")
	p.until(`!document.querySelector("dialog") && !` + item("one") + ` && ` + item("two"))

	// Tried again it fails again, and is parked again.
	p.press(`[...` + item("two") + `.querySelectorAll("button")].find((b) => b.innerText === "Try again")`)
	p.until(`document.querySelector(".unseen[role=status]").innerText === "It is tried again"`)
	p.until(item("two") + `?.innerText.includes("after 1 try")`)
	p.visit("chat")
	p.until(`document.querySelectorAll(".worker.completed").length === 2 && document.querySelector(".worker .below").innerText === "a result"`)
}

// leaves has a typed worker that leaves two artifacts.
const leaves = `[
 {"match": {"role": "worker", "hasToolResult": false}, "answer": {"calls": [
   {"name": "artifact_write", "arguments": {"name": "plans/PLAN.md", "content": "# The plan\n\n- [x] one\n- [ ] two\n"}},
   {"name": "artifact_write", "arguments": {"name": "numbers.json", "content": "{\"a\":[1,2]}"}}]}},
 {"match": {"role": "worker"}, "answer": {"text": "{\"total\": 3, \"files\": [\"a.go\"]}"}},
 {"answer": {"text": "noted"}}]`

func TestWhatARunLeaves(t *testing.T) {
	s := newSite(t, leaves)
	s.file(".goclaw/agents/counter.md", "---\nname: counter\ndescription: Counts\ntools: [artifact_write]\ngoclaw:\n  version: 1\n  output: {format: json, schema: {type: object, required: [total]}}\n---\nCount it all.\n")
	var run struct {
		ID string `json:"runId"`
	}
	s.api("POST", "/api/runs", map[string]string{"task": "count", "agent": "counter"}, &run)
	p := s.signedIn("runs/" + run.ID)
	// A typed answer is JSON to read, not JSON in a string.
	p.until(`document.querySelector(".lead pre")?.innerText === JSON.stringify({ files: ["a.go"], total: 3 }, null, 2)`)
	p.click(".step.model > button")
	p.clickOn("The request as it was sent")
	p.until(`document.querySelector(".step.model .fold pre")?.innerText.includes("Count it all.")`)

	p.clickOn("Artifacts")
	p.clickOn("plans/PLAN.md")
	p.until(`document.querySelector(".artifacts .md h1")?.innerText === "The plan" && document.querySelector(".artifacts .md").innerText.includes("☑ one\n☐ two")`)
	p.clickOn("numbers.json")
	p.until(`document.querySelector(".artifacts pre")?.innerText === JSON.stringify({ a: [1, 2] }, null, 2)`)
	got := p.js(`(async () => { const a = document.querySelector(".artifacts a[download]"); const r = await fetch(a.href); return r.headers.get("Content-Disposition").startsWith("attachment") })()`)
	if got != "true" {
		t.Error("an artifact is shown by the browser, not saved")
	}

	p.visit("definitions/counter")
	p.clickOn("Instructions")
	p.until(`document.querySelector(".definition pre")?.innerText.includes("Count it all.")`)
}

// A view that breaks says so, and the others go on.
func TestABrokenView(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("status")
	p.shows("Kill switch")
	p.expect("no array")
	p.js(`(() => { const map = Array.prototype.map; Array.prototype.map = function (...args) { if (this[0]?.id === "broken") throw new Error("no array"); return map.apply(this, args) };
		const real = fetch; window.fetch = (path, init) => (path === "/api/parked" ? Promise.resolve(new Response('[{"id": "broken"}]')) : real(path, init)) })()`)
	p.visit("parked")
	p.until(`document.querySelector("main [role=alert]")?.innerText.includes("This view has a fault: no array")`)
	p.visit("status")
	p.shows("Kill switch")
}

// configure writes the configuration; the gateway is to be started after it.
func (s *site) configure(text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.home, "goclaw.json"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
