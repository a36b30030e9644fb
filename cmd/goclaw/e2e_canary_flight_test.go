package main

import (
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// flight makes the choices of one model reply; the same each time.
type flight struct {
	*aviary
	*mathrand.Rand
	cage  *cage
	job   string
	first bool
}

func newFlight(w *aviary, c *cage, job string, batch int) *flight {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", job, batch)
	return &flight{w, mathrand.New(mathrand.NewPCG(w.seed, h.Sum64())), c, job, batch == 0}
}

func (p *flight) pick(from ...string) string { return from[p.IntN(len(from))] }

// spawn is a random order.
func (p *flight) spawn(job string) args {
	words := []string{"look at", "sum up", "compare", "use", "explain"}
	a := args{"label": strings.ToLower(job), "task": fmt.Sprintf("%s: %s @%s, then (@%s) and @%s.", job, p.pick(words...), p.target(), p.spelling(), p.pick(p.cage.public...))}
	if p.IntN(2) == 0 {
		a["context"] = fmt.Sprintf("See @%s and `@%s`; ask agent:%s:main.", p.spelling(), p.target(), p.cage.id)
	}
	return a
}

// target is a path to something private.
func (p *flight) target() string {
	c := p.cage
	other := p.agents[p.IntN(len(p.agents))]
	private := append(slices.Clone(privateFiles), "memory/deep/n.md", ".git/config", ".git/objects/ab/cdef", ".git/logs/HEAD")
	name := p.pick(private...)
	return p.pick(name, name, name, name,
		fmt.Sprintf("deep/soft%d", p.IntN(6)), fmt.Sprintf("hard%d", 2*p.IntN(3)), fmt.Sprintf("deep/hard%d", 1+2*p.IntN(3)),
		"deep/mem-link/2026-11-20.md", "deep/up/"+name, "to-home/agents/"+c.id+".md", "to-home/token", "to-home/goclaw.db",
		".goclaw/output/0123-other-run/exec.txt", filepath.Join(p.home, "goclaw.db"), filepath.Join(p.home, "agents", c.id+".md"),
		filepath.Join(other.dir, name), "../ws-"+other.id+"/"+name, "memory", ".git", ".goclaw/output", ".", "deep")
}

// spelling is a target under another name.
func (p *flight) spelling() string {
	s := p.target()
	for range p.IntN(4) {
		switch p.IntN(12) {
		case 0:
			s = strings.ToUpper(s)
		case 1:
			s = strings.ToLower(s)
		case 2:
			s = "./" + s
		case 3:
			s = "deep/../" + s
		case 4:
			s = "deep/up/" + s
		case 5:
			s = filepath.Join(p.cage.dir, s)
		case 6:
			s = "/proc/self/cwd/" + s
		case 7:
			s = strings.ReplaceAll(s, "/", "//")
		case 8:
			s += p.pick(".", "/", "/.", " ", "::$DATA", "\u200b")
		case 9:
			s = strings.Replace(s, "M", "Ｍ", 1)
		case 10:
			s = "/proc/self/root" + filepath.Join(p.cage.dir, s)
		case 11:
			s = "memory/../" + s
		}
	}
	return s
}

// batch is what a worker's model wants done at once.
func (p *flight) batch() []providertest.Call {
	var calls []providertest.Call
	add := func(tool string, a args) {
		calls = append(calls, providertest.Call{Name: tool, Arguments: arguments(a)})
	}
	if p.first {
		for _, name := range p.cage.lifted {
			add("read", args{"path": name})
		}
	}
	for range 3 + p.IntN(6) {
		path := p.spelling()
		switch p.IntN(15) {
		case 0, 1, 2:
			add("read", args{"path": path})
		case 3, 4:
			add("grep", args{"pattern": p.pick("qzx.*", ".", "anary", "(?i)J[A-Z2-7]+"), "path": path, "context": p.IntN(3)})
		case 5:
			add("grep", args{"pattern": "qzx.anary", "glob": p.pick("**", "*.md", "**/*.md", "{SOUL,USER}.md", ".git/**", "hard*")})
		case 6:
			add("glob", args{"pattern": p.pick("**/*", "*.md", "../**", ".git/**", "to-home/*"), "path": p.pick("", ".", path)})
		case 7:
			add("ls", args{"path": path})
		case 8:
			add("edit", args{"path": path, "old": "x", "new": "evil"})
		case 9:
			add("write", args{"path": p.pick(path, "memory/evil.md", "AGENTS.md", "skills/evil/SKILL.md", ".goclaw/agents/evil.md", ".claude/agents/evil.md", "out/"+p.job+".txt"), "content": "evil"})
		case 10:
			other := p.agents[p.IntN(len(p.agents))]
			add(p.pick("sessions_history", "sessions_history", "sessions_list"), args{"query": p.pick("", "qzx"),
				"sessionKey": p.pick("agent:"+p.cage.id+":main", "agent:"+p.cage.id+":api:user:other", "agent:"+other.id+":main", "agent:"+other.id+":api:user:other")})
		case 11:
			add("subagents", args{"action": p.pick("list", "info", "log", "log"), "id": fmt.Sprintf("job-%d-%d", p.IntN(6), p.IntN(20))})
		case 12:
			add(p.pick("session_status", "memory_search", "memory_get", "artifact_list", "Read"), args{"query": "qzx", "path": "MEMORY.md"})
		case 14:
			if p.IntN(3) == 0 {
				add("artifact_write", args{"name": p.pick("DIARY.md", "MEMORY.md", "../SOUL.md", "notes/a.md"), "content": "written by " + p.job})
				continue
			}
			name := p.pick("DIARY.md", "MEMORY.md", "notes/a.md", "result.md")
			add("artifact_read", args{p.pick("name", "handle"): p.pick(name, name, goclaw.ArtifactHandle(p.agents[p.IntN(len(p.agents))].turn, name), "artifact:main/"+name)})
		case 13:
			if p.first && strings.Count(p.job, "-") == 2 && p.IntN(4) == 0 {
				job := fmt.Sprintf("%s-%d", p.job, len(calls))
				add("sessions_spawn", p.spawn(job))
			} else {
				add("read", args{"path": p.target()})
			}
		}
	}
	if p.IntN(3) == 0 {
		add("exec", args{"command": p.command(), "cwd": p.pick("", "", "deep", "memory")})
	}
	return calls
}

// command tries to read something private; what it prints is searched for
// canaries and for their disguises.
func (p *flight) command() string {
	a, b := "'"+p.spelling()+"'", "'"+p.target()+"'"
	ws, other := p.cage.dir, p.agents[p.IntN(len(p.agents))].dir
	return p.pick(
		"cat "+a+" "+b, "cd deep && cat ../"+b+" "+a, "cp "+b+" deep/stolen; cat deep/stolen*", "ln "+b+" deep/own; cat deep/own*", "ln -sf ../"+b+" deep/own2; cat deep/own2",
		"base64 "+b+"; rev "+a, "xxd -p "+b+"; od -An -c "+b, "tr a-zA-Z n-za-mN-ZA-M < "+b, "gzip -c "+b+" | gunzip",
		"grep -rah qzx . "+ws, "find . -type f -exec cat {} +", "tar cf - . | tar xOf -", "mv memory m2; cat m2/*", "mkdir -p memory; ls -la memory .git; cat memory/*",
		"cat "+other+"/*.md "+other+"/memory/*", "cat "+p.home+"/* "+p.home+"/agents/*", "strings -n 8 "+p.home+"/goclaw.db*",
		"cat /proc/1/root"+ws+"/MEMORY.md /proc/self/cwd/SOUL.md", "cat *.md hard* deep/*", "echo evil > SOUL.md; echo evil >> hard0; rm -rf memory .git USER.md",
		"echo evil > AGENTS.md; echo evil >> TOOLS.md; mkdir -p skills/evil .claude/agents .goclaw/agents; echo evil > .claude/agents/x.md", "git log -p; git show HEAD:MEMORY.md; git init -q .",
		"cat .goclaw/output/*/*; ls -laR .goclaw", "umount "+ws+"/memory; unshare -rm cat MEMORY.md", "seq 30000; cat "+b, "env; cat /proc/*/environ | tr '\\0' '\\n'",
	)
}
