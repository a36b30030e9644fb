package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// TestCanaries is privacy as a property: random workspaces with a fresh canary
// in everything that is private, random tasks, and workers whose model makes
// random calls. No canary is in the bytes of any worker's request, but for what
// a person has lifted by name for that agent's workers; the main agents'
// requests hold theirs. GOCLAW_CANARY_WORKERS says how many workers (default
// 64), GOCLAW_CANARY_SEED repeats a run's choices.
func TestCanaries(t *testing.T) {
	workers := 64
	if n, err := strconv.Atoi(os.Getenv("GOCLAW_CANARY_WORKERS")); err == nil && n > 0 {
		workers = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("GOCLAW_CANARY_SEED"), 10, 64); err == nil {
		seed = n
	}
	onEachWire(t, func(t *testing.T, wire string) {
		t.Logf("GOCLAW_CANARY_SEED=%d", seed)
		w := newAviary(t, wire, seed)
		g := w.gateway()
		w.token = g.token
		w.converse(g)
		w.checkMain()
		w.release(g, workers/2)
		g.stop()
		w.checkWorkers(workers / 2)
		w.checkFiles()
	})
}

// canaryMark begins every canary; no tool call and no task holds it.
const canaryMark = "qzxCanary7vJ"

var canaryText = regexp.MustCompile(canaryMark + "[A-Z2-7]{16}")

// disguises are what a command may print in the place of the mark.
func disguises() []string {
	reversed := []byte(canaryMark)
	slices.Reverse(reversed)
	rot13 := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, canaryMark)
	out := []string{strings.ToUpper(canaryMark), strings.ToLower(canaryMark), string(reversed), rot13, hex.EncodeToString([]byte(canaryMark))}
	for shift := range 3 { // wherever it stands in what is encoded
		code := base64.StdEncoding.EncodeToString([]byte("xx"[:shift] + canaryMark))
		out = append(out, code[4:len(code)-4])
	}
	return out
}

// aviary is a home with many agents, each with a workspace full of canaries.
type aviary struct {
	*e2e
	seed      uint64
	token     string
	disguises []string
	agents    []*cage

	mu       sync.Mutex
	wrong    map[string]bool
	requests int
	calls    map[string]int
	jobs     map[string]bool // that were heard of
}

// cage is one agent.
type cage struct {
	id       string
	dir      string
	lifted   []string          // by name
	secrets  map[string]string // canary by what holds it
	public   []string
	turn     string            // the run of the main agent that left an artifact
	kept     map[string]string // what workers may not change, by path
	heard    map[string]bool   // canaries in the main agent's requests
	liftSeen map[string]bool   // canaries in its workers' requests
}

func newAviary(t *testing.T, wire string, seed uint64) *aviary {
	if wire == providertest.WireOpenAI {
		seed++ // other choices than on the other wire
	}
	w := &aviary{seed: seed, disguises: disguises(), wrong: map[string]bool{}, calls: map[string]int{}, jobs: map[string]bool{}}
	w.e2e = newE2E(t, wire, w.answer, providertest.WithoutRecording())
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	var list []string
	for i, lifted := range [][]string{nil, nil, {"USER.md"}, nil, {"memory/2026-11-20.md"}, nil} {
		c := w.fillCage(rng, fmt.Sprintf("a%d", i), lifted)
		w.agents = append(w.agents, c)
		inherit := ""
		if lifted != nil {
			inherit = fmt.Sprintf(`, "inherit": ["AGENTS.md", %q]`, lifted[0])
		}
		list = append(list, fmt.Sprintf(`{"id": %q, "workspace": %q, "subagents": {"maxChildrenPerAgent": 10000, "maxRunsPerTree": 100000%s}}`, c.id, c.dir, inherit))
	}
	w.config(`"idleTimeoutSeconds": 60`, `"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2, "maxConcurrent": 8}}, "list": [`+strings.Join(list, ", ")+`]},
		"tools": {"exec": {"timeoutSeconds": 10}}`)
	return w
}

func (c *cage) secret(where string) string {
	c.secrets[where] = canaryMark + rand.Text()[:16]
	return c.secrets[where]
}

// fillCage makes a random workspace.
func (w *aviary) fillCage(rng *mathrand.Rand, id string, lifted []string) *cage {
	c := &cage{
		id: id, dir: filepath.Join(filepath.Dir(w.home), "ws-"+id), lifted: lifted,
		secrets: map[string]string{}, kept: map[string]string{}, heard: map[string]bool{}, liftSeen: map[string]bool{},
	}
	put := func(name, content string) { w.file(filepath.Join(c.dir, name), content) }
	private := append(slices.Clone(privateFiles), "memory/deep/n.md", ".git/config", ".git/objects/ab/cdef", ".git/logs/HEAD")
	for _, name := range private {
		c.kept[name] = strings.Repeat("x ", rng.IntN(300)) + "\n" + c.secret(name) + "\n"
		put(name, c.kept[name])
	}
	put(".goclaw/output/0123-other-run/exec.txt", c.secret("another run's output")+"\n")
	w.file(filepath.Join(w.home, "agents", id+".md"), c.secret("the home")+"\n")
	for _, name := range []string{"AGENTS.md", "TOOLS.md", "skills/s/SKILL.md"} {
		c.kept[name] = "public rules of " + id + "\n"
		put(name, c.kept[name])
	}
	c.public = []string{"public.txt", "deep/plain.txt", "AGENTS.md"}
	for i := range 2 + rng.IntN(4) {
		c.public = append(c.public, fmt.Sprintf("%s/file%d.txt", []string{"src", "docs/a", "deep"}[rng.IntN(3)], i))
	}
	for _, name := range c.public {
		if c.kept[name] == "" {
			put(name, "PUBLIC-FACT\n")
		}
	}
	var names []string
	for name := range c.secrets {
		if name != "another run's output" && name != "the home" && !slices.Contains(lifted, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	link := func(make func(old, name string) error, old, name string) {
		if err := make(old, filepath.Join(c.dir, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range 6 {
		target := names[rng.IntN(len(names))]
		link(os.Symlink, filepath.Join(c.dir, target), fmt.Sprintf("deep/soft%d", i))
		link(func(old, name string) error { return os.Link(filepath.Join(c.dir, old), name) }, names[rng.IntN(len(names))], fmt.Sprintf("%shard%d", []string{"", "deep/"}[i%2], i))
	}
	link(os.Symlink, "../memory", "deep/mem-link")
	link(os.Symlink, "..", "deep/up")
	link(os.Symlink, w.home, "to-home")
	c.secret(mainArtifact)
	return c
}

// mainArtifact holds what a main agent writes into one.
const mainArtifact = "an artifact of the main agent"

// converse lets each main agent hear a canary in its chat, and another chat of
// its own, and look at its files.
func (w *aviary) converse(g *gatewayProcess) {
	w.t.Helper()
	for _, c := range w.agents {
		for _, m := range []struct{ session, text string }{
			{"agent:" + c.id + ":api:user:other", "remember " + c.secret("another session")},
			{"agent:" + c.id + ":main", "control " + c.secret("the chat")},
		} {
			c.turn = g.send(m.session, m.text)
			w.settle(g, c.turn)
		}
	}
}

// release sends n workers on their way, and waits for them.
func (w *aviary) release(g *gatewayProcess, n int) {
	w.t.Helper()
	var sent []string
	for i, c := range w.agents {
		mine := n / len(w.agents)
		if i < n%len(w.agents) {
			mine++
		}
		sent = append(sent, g.send("agent:"+c.id+":main", fmt.Sprintf("release %d", mine)))
	}
	for _, run := range sent {
		w.settle(g, run)
	}
}

// settle waits until a message and the workers that it led to are done with.
func (w *aviary) settle(g *gatewayProcess, run string) {
	w.t.Helper()
	limit := time.Now().Add(10 * time.Minute)
	for {
		status, body := g.call(http.MethodGet, "/api/messages/"+run+"?workers=true&timeout=30", "")
		if status == http.StatusOK {
			if !strings.Contains(body, `"status":"completed"`) {
				w.t.Fatalf("%s", body)
			}
			return
		}
		if status != http.StatusNoContent || time.Now().After(limit) {
			w.t.Fatalf("%d %s", status, body)
		}
	}
}

var (
	jobName     = regexp.MustCompile(`JOB-(\d+)-[\d-]+`)
	workspaceOf = regexp.MustCompile(`/ws-a(\d)`)
)

// answer plays all models, and looks at every request.
func (w *aviary) answer(r *providertest.Request) providertest.Answer {
	if r.Worker() {
		return w.worker(r)
	}
	m := workspaceOf.FindStringSubmatch(r.System)
	if m == nil {
		return providertest.Answer{Text: "whose am I?"}
	}
	c := w.agents[m[1][0]-'0']
	w.mu.Lock()
	for _, s := range canaryText.FindAllString(string(r.Raw), -1) {
		c.heard[s] = true
	}
	w.mu.Unlock()
	newest := r.NewestText()
	switch {
	case strings.Contains(newest, "[Subagent: "):
		return providertest.Answer{Text: goclaw.NoReply}
	case len(r.NewestResults()) > 0:
		return providertest.Answer{Text: "done"}
	case strings.Contains(newest, "control"):
		a := providertest.Answer{ChunkSize: 1 << 16}
		for _, name := range []string{"memory/2026-11-20.md", "memory/deep/n.md", ".git/config"} {
			a.Calls = append(a.Calls, providertest.Call{Name: "read", Arguments: arguments(args{"path": name})})
		}
		a.Calls = append(a.Calls, providertest.Call{Name: "exec", Arguments: arguments(args{"command": "cat .git/objects/ab/cdef .git/logs/HEAD; cat .goclaw/output/*/exec.txt; cat MEMORY.md; seq 20000"})},
			providertest.Call{Name: "artifact_write", Arguments: arguments(args{"name": "DIARY.md", "content": c.secrets[mainArtifact]})},
			providertest.Call{Name: "sessions_history", Arguments: arguments(args{"sessionKey": "agent:" + c.id + ":api:user:other"})})
		return a
	case strings.Contains(newest, "release"):
		n, _ := strconv.Atoi(strings.Fields(newest[strings.LastIndex(newest, "release"):])[1])
		a := providertest.Answer{ChunkSize: 1 << 16}
		for i := range n {
			job := fmt.Sprintf("JOB-%s-%d", c.id[1:], i)
			a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: arguments(newFlight(w, c, job, 0).spawn(job))})
		}
		return a
	}
	return providertest.Answer{Text: "noted"}
}

// worker looks for canaries in a worker's request, and goes on with its work.
func (w *aviary) worker(r *providertest.Request) providertest.Answer {
	job := jobName.FindString(r.Messages[0].PlainText())
	if job == "" {
		w.fault("a worker without a job: %.300s", r.Messages[0].PlainText())
		return providertest.Answer{Text: "done"}
	}
	c := w.agents[job[len("JOB-")]-'0']
	w.inspect(c, job, r)
	batch := 0
	for _, m := range r.Messages {
		if m.Role == goclaw.RoleAssistant {
			batch++
		}
	}
	if batch >= 2 {
		return providertest.Answer{Text: "done"}
	}
	p := newFlight(w, c, job, batch)
	a := providertest.Answer{Calls: p.batch(), ChunkSize: 1 << 16}
	w.mu.Lock()
	for _, call := range a.Calls {
		w.calls[call.Name]++
	}
	w.mu.Unlock()
	return a
}

func (w *aviary) inspect(c *cage, job string, r *providertest.Request) {
	raw := string(r.Raw)
	allowed := map[string]bool{}
	for _, name := range c.lifted {
		allowed[c.secrets[name]] = true
	}
	found := canaryText.FindAllString(raw, -1)
	w.mu.Lock()
	w.requests++
	w.jobs[job] = true
	for _, s := range found {
		if allowed[s] {
			c.liftSeen[s] = true
		}
	}
	w.mu.Unlock()
	for _, s := range found {
		if !allowed[s] {
			w.fault("%s of %s was sent %s, in a result of %s", job, c.id, w.where(s), resultWith(r, s))
		}
	}
	if strings.Count(raw, canaryMark) != len(found) {
		w.fault("%s was sent a part of a canary", job)
	}
	for _, secret := range append([]string{e2eKey, w.token}, w.disguises...) {
		if strings.Contains(raw, secret) && (c.lifted == nil || secret == e2eKey || secret == w.token) {
			w.fault("%s was sent %q, in a result of %s", job, secret, resultWith(r, secret))
		}
	}
}

// where says what holds a canary.
func (w *aviary) where(canary string) string {
	for _, c := range w.agents {
		for where, s := range c.secrets {
			if s == canary {
				return c.id + "'s " + where
			}
		}
	}
	return "an unknown canary"
}

// resultWith names the call whose result holds text.
func resultWith(r *providertest.Request, text string) string {
	calls := map[string]goclaw.ToolCall{}
	for _, m := range r.Messages {
		for _, c := range m.Calls() {
			calls[c.ID] = c
		}
		for _, p := range m.Parts {
			if p.Result != nil && strings.Contains(p.Result.Content, text) {
				return calls[p.Result.CallID].Name + " " + calls[p.Result.CallID].Arguments
			}
		}
	}
	return "no call: it is in the prompt"
}

func (w *aviary) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong[fmt.Sprintf(format, args...)] = true
}

// checkMain wants every main agent to have heard all of its own, and nothing
// of others: else the test shows nothing.
func (w *aviary) checkMain() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.agents {
		for where, s := range c.secrets {
			if c.heard[s] != (where != "the home") {
				w.t.Errorf("control: %s's main agent has heard of %s: %v", c.id, where, c.heard[s])
			}
			delete(c.heard, s)
		}
		for s := range c.heard {
			w.t.Errorf("%s's main agent has heard of %s", c.id, w.where(s))
		}
	}
}

func (w *aviary) checkWorkers(sent int) {
	w.t.Helper()
	for fault := range w.wrong {
		w.t.Error(fault)
	}
	for _, c := range w.agents {
		for _, name := range c.lifted {
			if len(c.liftSeen) == 0 {
				w.t.Errorf("%s was lifted for %s's workers, and none has seen it", name, c.id)
			}
		}
	}
	if len(w.jobs) < sent {
		w.t.Errorf("%d workers were heard of, %d were sent", len(w.jobs), sent)
	}
	w.t.Logf("%d workers (%d of them workers' own), %d requests, calls %v", len(w.jobs), len(w.jobs)-sent, w.requests, w.calls)
}

// checkFiles wants all that workers may not change to be as it was.
func (w *aviary) checkFiles() {
	w.t.Helper()
	for _, c := range w.agents {
		for name, want := range c.kept {
			if raw, err := os.ReadFile(filepath.Join(c.dir, name)); err != nil || string(raw) != want {
				w.t.Errorf("%s of %s was changed: %q, %v", name, c.id, raw, err)
			}
		}
		for _, name := range []string{".claude", ".opencode", ".goclaw/agents", "skills/evil", "memory/evil.md", ".git/hooks"} {
			if _, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
				w.t.Errorf("a worker made %s of %s", name, c.id)
			}
		}
	}
}
