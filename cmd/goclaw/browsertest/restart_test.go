package browsertest

import (
	"strings"
	"testing"
)

func TestReconnect(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("chat")
	p.say("before")
	p.until(`document.querySelectorAll(".turn .facts").length === 1`)
	p.expect("net::ERR_") // whatever a request meets
	s.kill()
	p.until(`document.querySelector(".banner.bad")?.innerText.includes("can't be reached") && document.querySelector(".lamp.lost")`)

	// What is said meanwhile is not lost, and not said twice.
	p.say("meanwhile")
	p.until(`document.querySelector(".composer .failure") && document.querySelector(".composer textarea").value === "meanwhile"`)

	s.start(strings.TrimPrefix(s.url, "http://"))
	s.say("agent:main:main", "from elsewhere")
	p.until(`document.querySelector(".lamp.open") && !document.querySelector(".banner.bad")`)
	p.until(`[...document.querySelectorAll(".you")].some((e) => e.innerText === "from elsewhere")`)
	p.click(".composer textarea")
	p.keys("\r")
	p.until(`[...document.querySelectorAll(".you")].filter((e) => e.innerText === "meanwhile").length === 1 && document.querySelectorAll(".turn .facts").length === 3`)
}

func TestKillSwitch(t *testing.T) {
	s := newSite(t, fiveWorkers)
	p := s.signedIn("status")
	p.click(".switch input")
	p.keys("too dear")
	p.clickOn("Pause everything")
	p.until(`document.querySelector(".banner.warn")?.innerText.includes("too dear")`)
	p.visit("chat")
	p.say("are you there?")
	p.until(`document.querySelector(".under-way .note.warn, .under-way .state")`)
	p.clickOn("Resume")
	p.until(`!document.querySelector(".banner.warn") && [...document.querySelectorAll(".turn .md")].at(-1)?.innerText.includes("are you there")`)
}
