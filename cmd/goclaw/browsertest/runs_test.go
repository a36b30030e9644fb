package browsertest

import (
	"fmt"
	"testing"
)

func TestFiveWorkersLive(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("chat")
	tree := s.signedIn("runs")
	tree.shows("Nothing has run yet.")
	s.gate.shut("lines.") // the workers' answers
	p.say("Spawn five workers")

	// In the chat the workers of the turn stand in it, live.
	p.until(`document.querySelectorAll(".turn .worker").length === 5`)
	// The other tab was told nothing but by the stream.
	tree.until(`document.querySelectorAll(".row.l2.running, .row.l2.queued").length === 5`)
	ticking := tree.js(`document.querySelector(".row.l2.running .el")?.innerText`)
	tree.until(`document.querySelector(".row.l2 .el").innerText !== ` + quoted(ticking))
	s.gate.release()
	tree.until(`document.querySelectorAll(".row.l2.completed").length === 6`) // the workers, and what announces them
	tree.until(`[...document.querySelectorAll(".row.l2 .tok")].every((e) => e.innerText !== "–") && [...document.querySelectorAll(".row.l2 .cost")].every((e) => e.innerText.startsWith("$"))`)
	p.until(`document.querySelectorAll(".worker.completed").length === 5`)
	p.until(`document.querySelector(".md table td")?.innerText === "1"`)
	p.shows("5 results announced")

	// From the tree into a run, its timeline, one of its steps; and back.
	tree.clickOn("chapter-3")
	tree.until(`document.title === "chapter-3 · GoClaw"`)
	tree.until(`document.querySelector("h1")?.innerText === "chapter-3" && document.querySelectorAll(".step.model").length === 2 && document.querySelectorAll(".step.tool").length === 2`)
	if got := tree.js(`(() => { const [a, b] = [...document.querySelectorAll(".step.tool rect")].map((e) => +e.getAttribute("x")); return a === b })()`); got != "true" {
		t.Error("parallel calls don't begin together")
	}
	tree.click(".step.tool > button")
	tree.until(`document.querySelector(".step.tool .detail").innerText.includes("how work is done here")`)
	link := tree.js(`location.href`)
	tree.clickOn("Prompt")
	tree.until(`document.querySelectorAll(".share rect").length > 4 && document.querySelector("main").innerText.includes("Stays cached between calls")`)
	tree.js(`history.back()`)
	tree.until(`document.querySelector(".step.tool.open")`)
	again := s.signedIn("")
	again.open(link)
	again.until(`document.querySelector(".step.tool.open .detail")`) // a link leads to the very step
}

func TestCancelOne(t *testing.T) {
	s := newSite(t, `[
	 {"match": {"role": "worker", "contains": "hang"}, "answer": {"delayMs": 600000, "text": "never"}},
	 {"answer": {"text": "done"}}]`)
	var one, two struct {
		ID string `json:"runId"`
	}
	s.api("POST", "/api/runs", map[string]string{"task": "please hang", "label": "hangs"}, &one)
	s.api("POST", "/api/runs", map[string]string{"task": "please hang as well", "label": "stays"}, &two)
	p := s.signedIn("runs")
	p.until(`document.querySelectorAll(".row.running").length === 2`)
	p.clickOn("hangs")
	p.clickOn("Cancel…")
	p.until(`document.querySelector("dialog[open] input") === document.activeElement`)
	p.keys("it took too long")
	p.clickOn("Cancel the run")
	p.until(`!document.querySelector("dialog") && document.querySelector(".runhead .state.cancelled")`)
	p.shows("it took too long")
	p.visit("runs")
	p.until(`document.querySelectorAll(".row.cancelled").length === 1 && document.querySelectorAll(".row.running").length === 1`)
	p.visit("runs/" + two.ID)
	p.clickOn("Steer")
	p.until(`document.querySelector("dialog[open] textarea") === document.activeElement`)
	p.keys("look at chapter 2 first")
	p.clickOn("Send")
	p.until(`!document.querySelector("dialog")`)
	s.api("POST", "/api/runs/"+two.ID+"/cancel", struct{}{}, nil)
	p.until(`document.querySelector(".runhead .state.cancelled")`) // whoever cancels it
}

func TestRunAgainWithChanges(t *testing.T) {
	s := newSite(t, `[{"match": {"role": "worker"}, "answer": {"text": "Done: {{task}}"}}, {"answer": {"text": "noted"}}]`)
	var first struct {
		ID string `json:"runId"`
	}
	s.api("POST", "/api/runs", map[string]string{"task": "Count the sheep", "label": "sheep", "context": "They are white."}, &first)
	p := s.signedIn("runs/" + first.ID)
	p.shows("Done: Count the sheep")
	p.clickOn("Run again…")
	p.until(`document.querySelector("dialog textarea").value === "Count the sheep" && document.querySelectorAll("dialog textarea")[1].value === "They are white."`)
	p.click("dialog textarea")
	p.js(`document.querySelector("dialog textarea").select()`)
	p.keys("Count the goats")
	p.clickOn("Start")
	p.shows("Done: Count the goats")
	if got := p.js(`location.hash.includes(` + quoted(first.ID) + `)`); got == "true" {
		t.Error("the page is still at the first run")
	}
	// What the gateway refuses is told where it was asked.
	p.expect("400")
	p.clickOn("Run again…")
	p.until(`document.activeElement.closest("dialog")`)
	p.js(`(() => { const f = [...document.querySelectorAll("dialog input")].find((i) => i.getAttribute("list")); f.focus() })()`)
	p.keys("nobody")
	p.clickOn("Start")
	p.until(`document.querySelector("dialog .failure")?.innerText.includes("nobody")`)
}

// A tree of thousands costs no more than what one sees of it.
func TestThousandsOfRuns(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("runs")
	p.shows("Nothing has run yet.")
	p.js(`(async () => {
		const runs = await import(new URL("runs.js", document.querySelector("script[type=module]").src));
		window.runs = runs;
		window.make = (i, more) => ({ runId: "run-" + i, ordinal: i, sessionKey: "agent:main:main", trigger: i % 10 ? "spawn" : "user", requesterKey: "", lane: "", depth: i % 10 ? 1 : 0,
			root: "run-" + (i - i % 10), parent: i % 10 ? "run-" + (i - i % 10) : "", task: "task " + i, label: i % 10 ? "worker " + i : "", profile: { model: "a/b", agent: "main", tools: [] },
			status: "running", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, costUSD: null }, createdAt: Date.now(), startedAt: Date.now(), ...more });
		for (let i = 0; i < 5000; i++) runs.take(make(i));
	})()`)
	p.until(`document.querySelectorAll(".row").length > 100`)
	if got := p.js(`document.querySelectorAll(".row").length > 450`); got == "true" {
		t.Errorf("%s rows are drawn", p.js(`document.querySelectorAll(".row").length`))
	}
	// News of one run touches its own row.
	p.js(`(() => {
		window.touched = new Set();
		new MutationObserver((list) => { for (const m of list) { const row = (m.target.closest ? m.target : m.target.parentElement)?.closest(".row"); if (row && !m.target.parentElement?.closest(".ticking") && !m.target.closest?.(".ticking")) touched.add(row.dataset.id); } })
			.observe(document.querySelector(".tree"), { subtree: true, childList: true, characterData: true, attributes: true });
		runs.take(make(4991, { usage: { input: 777000, output: 0, cacheRead: 0, cacheWrite: 0, costUSD: 1.5 } }));
	})()`)
	p.until(`document.querySelector('[data-id="run-4991"] .cost').innerText === "$1.50"`)
	if got := p.js(`[...touched].join()`); got != "run-4991" {
		t.Errorf("news of run-4991 touched %s", got)
	}
	p.click(".filters input")
	p.keys("worker 4321")
	p.until(`document.querySelectorAll(".row:not(.head)").length === 2`) // it, and the top of its tree
}

// Older runs are read as one comes to them.
func TestOlderRuns(t *testing.T) {
	s := newSite(t, `[{"answer": {"text": "done"}}]`)
	for i := range 230 {
		s.api("POST", "/api/messages", map[string]string{"session": fmt.Sprintf("agent:main:api:user:u%d", i%20), "text": fmt.Sprintf("message %d", i)}, nil)
	}
	p := s.signedIn("runs")
	p.until(`document.querySelectorAll(".row.l1").length >= 200`)
	p.js(`(() => { const m = document.querySelector("main"); m.scrollTop = m.scrollHeight })()`)
	p.until(`document.querySelectorAll(".row.l1").length === 230 && document.querySelector("main").innerText.includes("message 0")`)
}
