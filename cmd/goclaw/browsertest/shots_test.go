package browsertest

import (
	"os"
	"path/filepath"
	"testing"
)

const largest = 200 << 10 // bytes of a picture in docs

// aDay is a conversation worth a picture.
const aDay = `[
 {"match": {"role": "main", "contains": "release notes", "hasToolResult": false}, "answer": {"thinking": "The changelog is long. One worker for each part, then I put it together.", "calls": [
  {"name": "ls", "arguments": {"path": "."}}, {"name": "read", "arguments": {"path": "CHANGELOG.md"}}]}},
 {"match": {"role": "main", "contains": "what changed", "hasToolResult": true, "not": "accepted"}, "answer": {"text": "The log has five parts. I hand each to a worker, and put their summaries together.", "calls": [
  {"name": "sessions_spawn", "arguments": {"task": "Sum up what changed for people who write definitions, in three sentences.", "label": "definitions"}},
  {"name": "sessions_spawn", "arguments": {"task": "Sum up what changed in the runtime, in three sentences.", "label": "runtime"}},
  {"name": "sessions_spawn", "arguments": {"task": "Sum up what changed in the API, in three sentences.", "label": "api"}},
  {"name": "sessions_spawn", "arguments": {"task": "List all changes that break something, with what to do.", "label": "breaking changes"}},
  {"name": "sessions_spawn", "arguments": {"task": "Check all links of the draft.", "label": "links"}}]}},
 {"match": {"role": "main", "contains": "accepted", "hasToolResult": true}, "answer": {"text": "Five workers are on it: four write, one checks the links. I'll put the notes together when they are done."}},
 {"match": {"role": "worker", "contains": "Check all links"}, "answer": {"delayMs": 600000, "text": "never"}},
 {"match": {"role": "worker", "contains": "break something", "hasToolResult": false}, "answer": {"delayMs": 900, "calls": [{"name": "grep", "arguments": {"pattern": "BREAKING", "path": "."}}, {"name": "read", "arguments": {"path": "CHANGELOG.md"}}, {"name": "read", "arguments": {"path": "no-such-file.md"}}]}},
 {"match": {"role": "worker", "hasToolResult": false}, "answer": {"delayMs": 700, "calls": [{"name": "read", "arguments": {"path": "CHANGELOG.md"}}, {"name": "grep", "arguments": {"pattern": "api", "path": "."}}]}},
 {"match": {"role": "worker"}, "answer": {"delayMs": 1100, "text": "Definitions may name other definitions as their next step. A broken file is told as it breaks, with line and column. Slices of large files are outlined rather than cut."}},
 {"match": {"contains": "[Subagent: "}, "answer": {"text": "Noted."}},
 {"answer": {"text": "### In short\n\n1. **Definitions** may name what comes next: a chain needs no code any more.\n2. A broken file is told *as it breaks*, such as ` + "`agents/review.md:4:8`" + `.\n3. Old budgets keep working.\n\n| part | changes | breaking |\n|---|---:|---:|\n| definitions | 14 | 1 |\n| runtime | 22 | 0 |\n| api | 9 | 2 |"}}
]`

func TestPictures(t *testing.T) {
	s := newSite(t, aDay)
	s.file("CHANGELOG.md", "# what changed\n\n- api: pages of lists\n- BREAKING: one key was renamed\n")
	s.run("run", "What is new, in short?")
	p := s.signedIn("chat")
	p.scheme("light")
	p.say("Write the release notes of this week from the changelog.")
	p.until(`document.querySelectorAll(".worker.completed").length === 4 && document.querySelectorAll(".worker.running").length === 1`)
	var runs []struct {
		ID    string `json:"runId"`
		Label string `json:"label"`
	}
	s.api("GET", "/api/runs?trigger=spawn", nil, &runs)
	run := ""
	for _, r := range runs {
		if r.Label == "breaking changes" {
			run = r.ID
		}
	}
	views := []struct{ name, place, ready string }{
		{"chat", "chat", `document.querySelectorAll(".worker").length === 5`},
		{"tree", "runs", `document.querySelectorAll(".row.l2").length >= 5`},
		{"run", "runs/" + run, `document.querySelectorAll(".step.tool").length === 3`},
		{"usage", "usage", `document.querySelectorAll(".plot").length === 2`},
	}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 800}, {"dark", "dark", 1280, 800}, {"phone", "light", 360, 740}} {
		p.scheme(look.scheme)
		p.size(look.width, look.height)
		for _, v := range views {
			p.visit(v.place)
			p.until(v.ready)
			p.until(`!document.querySelector("main").innerText.includes("Loading…")`)
			path := filepath.Join(t.TempDir(), "page.png")
			if *update {
				path = filepath.Join("..", "..", "..", "docs", "img", "page-"+v.name+"-"+look.name+".png")
			}
			if png := p.shot(path); len(png) > largest || len(png) < 4<<10 {
				t.Errorf("%s, %s: %d bytes", v.name, look.name, len(png))
			}
		}
	}
	s.api("POST", "/api/messages", map[string]string{"session": "agent:main:main", "text": "/stop all"}, nil)
	if *update {
		if _, err := os.Stat("../../../docs/img/page-chat-light.png"); err != nil {
			t.Error(err)
		}
	}
}
