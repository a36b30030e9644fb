package browsertest

import (
	"strings"
	"testing"
)

func TestCron(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("cron")
	p.clickOn("Add a job")
	p.until(`document.querySelector("dialog input") === document.activeElement`)
	p.keys("morning news")
	p.until(`document.querySelector("dialog small").innerText === "at 09:00 Monday to Friday"`)
	p.click("dialog textarea")
	p.keys("Read the news")
	p.clickOn("Save")
	p.until(`!document.querySelector("dialog") && document.querySelectorAll(".job").length >= 1`)
	p.shows("at 09:00 Monday to Friday")
	job := `[...document.querySelectorAll(".job")].find((e) => e.innerText.includes("morning news"))`
	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Run now")`)
	p.until(job + `.innerText.includes("Last ")`)
	p.press(job + `.querySelector(".foldhead")`)
	p.until(job + `.querySelector("table .state.completed, table .state.running, table .state.queued") && ` + job + `.innerText.includes("by hand") && ` + job + `.querySelectorAll("time").length > 2`)
	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Pause")`)
	p.until(job + `.innerText.includes("paused")`)
	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Resume")`)
	p.until(`!` + job + `.innerText.includes("paused")`)

	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Edit…")`)
	p.until(`document.querySelectorAll("dialog select").length >= 4 && document.activeElement.closest("dialog")`)
	p.js(`(() => { const e = [...document.querySelectorAll("dialog input.mono")][0]; e.focus(); e.select() })()`)
	p.keys("30 7 * * *")
	p.until(`document.querySelector("dialog small").innerText === "at 07:30"`)
	p.clickOn("Save")
	p.until(`!document.querySelector("dialog") && ` + job + `.innerText.includes("at 07:30")`)

	// What the gateway refuses is told in the form.
	p.expect("400")
	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Edit…")`)
	p.until(`document.querySelector("dialog input.mono") && document.activeElement.closest("dialog")`)
	p.js(`(() => { const e = document.querySelector("dialog input.mono"); e.focus(); e.select() })()`)
	p.keys("99 99 * * *")
	p.clickOn("Save")
	p.until(`document.querySelector("dialog .failure")`)
	p.keys(escape)
	p.press(`[...` + job + `.querySelectorAll("button")].find((b) => b.innerText === "Remove…")`)
	p.clickOn("Remove the job")
	p.until(`!document.querySelector("main").innerText.includes("morning news")`)

	// What was due once is over, not paused.
	s.run("cron", "add", "--name", "tea", "--at", "1s", "Say that the tea is ready")
	p.until(`[...document.querySelectorAll(".job .tag")].some((e) => e.innerText === "over")`)
}

const broken = "---\nname: reviewer\ndescription: Reviews a change\ntools: [read, grpe]\n---\nReview it.\n"

func TestDefinitionBreaks(t *testing.T) {
	s := newSite(t, fiveWorkers)
	s.file(".goclaw/agents/reviewer.md", strings.Replace(broken, "grpe", "grep", 1))
	p := s.signedIn("definitions")
	one := `[...document.querySelectorAll(".definition")].find((e) => e.querySelector("b").innerText === "reviewer")`
	p.until(one + `.querySelector(".tag.good")?.innerText === "ok"`)
	s.file(".goclaw/agents/reviewer.md", broken)
	p.until(one + `.querySelector(".problems")?.innerText.includes("grpe")`) // nobody loaded the page again
	if got := p.js(one + `.querySelector(".problems code").innerText`); got != "agents/reviewer.md:4:15" {
		t.Errorf("the problem is said to be at %s", got)
	}
	s.file(".goclaw/agents/reviewer.md", strings.Replace(broken, "name:", "name", 1))
	p.until(`[...document.querySelectorAll(".definition .tag.bad")].some((e) => e.innerText === "rejected")`)
	s.file(".goclaw/agents/reviewer.md", strings.Replace(broken, "grpe", "grep", 1))
	p.until(one + `.querySelector(".tag.good") && !` + one + `.querySelector(".problems")`)
}

func TestUsage(t *testing.T) {
	s := newSite(t, fiveWorkers)
	s.run("run", "Spawn five workers")
	p := s.signedIn("usage")
	p.until(`document.querySelectorAll(".plot svg rect").length >= 4 && document.querySelectorAll("main table tbody tr").length === 1`)
	p.clickOn("Model")
	p.until(`document.querySelectorAll(".lying li").length === 2 && document.querySelector("main table tbody td").innerText.includes("anthropic/")`)
	if got := p.js(`location.hash`); got != "#/usage?by=model" {
		t.Errorf("the address is %s", got)
	}
	// The table beside the plots has their sum.
	p.until(`document.querySelector(".sums").innerText.includes(document.querySelector("main table tbody td:last-child").innerText)`)
}
