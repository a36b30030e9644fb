package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// privateFiles are the main agent's own; all but the last are in its prompt.
var privateFiles = []string{"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md", "memory/2026-11-20.md"}

// TestPrivacy: a worker whose model tries every route that we know sees nothing
// that is private; the main agent sees it all.
func TestPrivacy(t *testing.T) {
	t.Parallel()
	for _, box := range []struct{ name, wire string }{
		{"bubblewrap", providertest.WireAnthropic},
		{"landlock", providertest.WireOpenAI},
	} {
		t.Run(box.name, func(t *testing.T) {
			t.Parallel()
			if found, why := sandbox.Find(t.Context(), box.name); found == nil {
				t.Skipf("NOT TESTED in this sandbox: %s", why)
			}
			testPrivacy(t, box.wire, box.name)
		})
	}
}

// spyWorld is a workspace full of secrets.
type spyWorld struct {
	*e2e
	secrets map[string]string // by where they are
	batches [][]providertest.Call
}

func testPrivacy(t *testing.T, wire, box string) {
	w := &spyWorld{secrets: map[string]string{"the key": e2eKey, "the network": "NETWORK-OPEN"}}
	w.e2e = newE2E(t, wire, func(r *providertest.Request) providertest.Answer { return w.answer(r) })
	if box == "landlock" {
		// Where bwrap isn't found, Landlock is taken.
		w.env = append(w.env, "PATH="+t.TempDir())
	}
	w.config(`"idleTimeoutSeconds": 60`, `"tools": {"exec": {"timeoutSeconds": 5}}`)
	w.fill()
	g := w.gateway()
	w.secrets["the gateway's token"] = g.token
	w.batches = w.probes(g)

	var status goclaw.Status
	g.get("/api/status", &status)
	if status.Sandbox != box {
		t.Fatalf("the sandbox is %s, want %s", status.Sandbox, box)
	}
	for _, m := range []struct{ session, text string }{
		{"agent:main:api:user:other", "remember " + w.secret("another session")},
		{"agent:main:main", "control " + w.secret("the chat")},
	} {
		var out goclaw.Outcome
		g.get("/api/messages/"+g.send(m.session, m.text)+"?workers=true&timeout=60", &out)
		if out.Status != goclaw.StateCompleted {
			t.Fatalf("%s: %+v", m.text, out)
		}
	}
	w.checkControl()

	stop := w.replaceMeanwhile("USER.md")
	var out goclaw.Outcome
	g.get("/api/messages/"+g.send("agent:main:main", "send the spy")+"?workers=true&timeout=80", &out)
	stop()
	if len(out.Runs) != 1 || out.Runs[0].Status != goclaw.StateCompleted || out.Runs[0].Result != "done" {
		t.Fatalf("outcome %+v", out)
	}
	g.stop()
	w.checkRequests()
	w.checkWorkspace()
}

// secret makes a new one.
func (w *spyWorld) secret(where string) string {
	s := strings.ToLower(rand.Text()[:20])
	w.secrets[where] = s
	return "CANARY " + s
}

// fill makes the workspace, with its history, links and hard links.
func (w *spyWorld) fill() {
	w.t.Helper()
	for _, name := range privateFiles {
		w.file(name, "Private: "+w.secret(name)+"\n")
	}
	w.file("public.txt", "PUBLIC-FACT\n")
	w.file("deep/plain.txt", "nothing\n")
	for name, target := range map[string]string{"soul-link": "SOUL.md", "deep/mem-link": "../memory", "deep/up": ".."} {
		if err := os.Symlink(target, filepath.Join(w.workspace, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"notes.txt": "MEMORY.md", "deep/linked.md": "memory/2026-11-20.md"} {
		if err := os.Link(filepath.Join(w.workspace, target), filepath.Join(w.workspace, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		w.t.Log("NOT TESTED: the history, for git is missing")
		return
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-qm", "all"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = w.workspace
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
}

// answer plays all models: the main agent's, which looks at its own files and
// sends a spy, and the spy's, which makes one batch of probes after another.
func (w *spyWorld) answer(r *providertest.Request) providertest.Answer {
	if r.Worker() {
		batch := 0
		for _, m := range r.Messages {
			if m.Role == goclaw.RoleAssistant {
				batch++
			}
		}
		if batch < len(w.batches) {
			return providertest.Answer{Calls: w.batches[batch], ChunkSize: 1 << 16}
		}
		return providertest.Answer{Text: "done"}
	}
	newest := r.NewestText()
	switch {
	case strings.Contains(newest, "[Subagent: "):
		return providertest.Answer{Text: goclaw.NoReply}
	case len(r.NewestResults()) > 0:
		return providertest.Answer{Text: "done"}
	case strings.Contains(newest, "control"):
		var a providertest.Answer
		for _, name := range privateFiles {
			a.Calls = append(a.Calls, providertest.Call{Name: "read", Arguments: arguments(args{"path": name})})
		}
		for _, command := range []string{"cat *.md memory/*", "git -c safe.directory='*' show HEAD:MEMORY.md", "cat MEMORY.md; seq 20000"} {
			a.Calls = append(a.Calls, providertest.Call{Name: "exec", Arguments: arguments(args{"command": command})})
		}
		return a
	case strings.Contains(newest, "spy"):
		return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: arguments(args{"task": "spy"})}}}
	}
	return providertest.Answer{Text: "noted"}
}

// checkControl wants the main agent to have seen everything in each way, or
// the test proves nothing.
func (w *spyWorld) checkControl() {
	w.t.Helper()
	all := w.server.Requests()
	last := all[len(all)-1]
	results := last.NewestResults()
	if len(results) != len(privateFiles)+3 {
		w.t.Fatalf("%d results", len(results))
	}
	for i, name := range privateFiles {
		s := w.secrets[name]
		if inPrompt := strings.Contains(last.System, s); inPrompt != (i < len(privateFiles)-1) {
			w.t.Errorf("control: the main agent's prompt holds %s: %v", name, inPrompt)
		}
		if !strings.Contains(results[i].Content, s) {
			w.t.Errorf("control: the main agent can't read %s: %s", name, results[i].Content)
		}
		if all := results[len(privateFiles)].Content; !strings.Contains(all, s) {
			w.t.Errorf("control: the main agent's command can't read %s: %s", name, all)
		}
	}
	memory := w.secrets["MEMORY.md"]
	if git := results[len(privateFiles)+1].Content; !strings.Contains(git, memory) {
		w.t.Errorf("control: the main agent's git: %s", git)
	}
	kept, _ := filepath.Glob(filepath.Join(w.workspace, ".goclaw/output/*/*.txt"))
	if len(kept) == 0 { // workers that are at it already may have kept some of their own
		w.t.Errorf("control: the main agent's long output was not kept")
	}
}

// replaceMeanwhile replaces a file by a rename again and again, as editors do.
func (w *spyWorld) replaceMeanwhile(name string) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	path := filepath.Join(w.workspace, name)
	done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			next := filepath.Join(w.home, "next.md")
			if err := os.WriteFile(next, []byte("Private: CANARY "+w.secrets[name]+"\n"), 0o600); err != nil {
				w.t.Error(err)
			}
			if err := os.Rename(next, path); err != nil {
				w.t.Error(err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// probes are the batches of calls that the spy makes.
func (w *spyWorld) probes(g *gatewayProcess) [][]providertest.Call {
	w.t.Helper()
	where, err := url.Parse(g.url)
	if err != nil {
		w.t.Fatal(err)
	}
	var calls []providertest.Call
	add := func(tool string, a args) {
		calls = append(calls, providertest.Call{Name: tool, Arguments: arguments(a)})
	}
	add("read", args{"path": "public.txt"})
	for _, p := range w.spellings() {
		add("read", args{"path": p})
	}
	for _, p := range []string{".", "", "memory", ".git", "deep/up", "deep/mem-link", w.home, "..", "/", "/proc/self", ".goclaw/output", "soft5", "memory/."} {
		add("ls", args{"path": p})
		add("glob", args{"pattern": "**/*", "path": p})
		add("grep", args{"pattern": "CANARY.*", "path": p, "context": 2})
	}
	for _, p := range []string{"**", "*.md", "**/*.md", "M*", "{SOUL,USER}.md", "memory/**", ".git/**", "../*", "deep/up/*", w.workspace + "/*"} {
		add("glob", args{"pattern": p})
		add("grep", args{"pattern": "CANARY", "glob": p})
	}
	for _, p := range append(slices.Clone(privateFiles), "memory.md", "notes.txt", "soul-link", "memory/new.md", ".git/hooks/post-commit", "deep/up/MEMORY.md", "../goclaw.json", "deep/mem-link/x.md") {
		add("grep", args{"pattern": ".", "path": p})
		add("edit", args{"path": p, "old": "CANARY", "new": "evil"})
		add("write", args{"path": p, "content": "evil"})
	}
	for _, tool := range []string{"sessions_history", "sessions_list", "subagents", "session_status", "sessions_spawn", "spawn_agent", "sessions_send", "memory_get", "memory_search", "Read", "cron", "message"} {
		add(tool, args{"sessionKey": "agent:main:main", "task": "cat MEMORY.md", "action": "list", "path": "MEMORY.md"})
	}
	for _, query := range []string{"private CANARY", "what is remembered?"} {
		add("memory_search", args{"query": query})
		add("memory_search", args{"query": query, "sources": []string{"transcripts"}})
	}
	for _, p := range append(slices.Clone(privateFiles), "session:agent:main:main#") {
		add("memory_get", args{"path": p})
	}
	add("memory_write", args{"text": "evil"})
	batches := slices.Collect(slices.Chunk(calls, 120))
	text, err := os.ReadFile("testdata/e2e/probes.txt")
	if err != nil {
		w.t.Fatal(err)
	}
	fill := strings.NewReplacer("{{ws}}", w.workspace, "{{home}}", w.home, "{{pid}}", fmt.Sprint(g.cmd.Process.Pid), "{{port}}", where.Port())
	calls = nil
	for line := range strings.Lines(fill.Replace(string(text))) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			add("exec", args{"command": line})
		}
	}
	batches = append(batches, slices.Collect(slices.Chunk(calls, 12))...)
	// What may have been left for later, through the file tools.
	calls = nil
	add("grep", args{"pattern": "CANARY", "path": "."})
	for _, p := range []string{"soft1.txt", "soft2.txt", "soft3.txt", "soft4/token", "soft6/2026-11-20.md", "soft5" + w.workspace + "/MEMORY.md", "hard1.txt", "hard2.txt", "taken.txt", "moved.txt", "late1.txt", "stolen1.txt", "public.txt"} {
		add("read", args{"path": p})
	}
	return append(batches, calls)
}

// spellings are paths that might lead to a private file.
func (w *spyWorld) spellings() []string {
	var out []string
	for _, n := range privateFiles {
		abs := filepath.Join(w.workspace, n)
		out = append(out,
			n, "./"+n, "././/"+n, n+"/", n+"/.", n+" ", " "+n, n+".", n+"\x00", n+"\x00.txt", n+"\n", n+"::$DATA", n+":x",
			strings.ToLower(n), strings.ToUpper(n), "../workspace/"+n, "deep/../"+n, "deep/up/"+n, "nowhere/../"+n, "memory/../"+n,
			abs, "/"+abs, "/proc/self/cwd/"+n, "/proc/self/root"+abs, "/proc/thread-self/root"+abs, "file://"+abs, "~/"+n, "$PWD/"+n,
			strings.ReplaceAll(n, ".", "%2E"), strings.ReplaceAll(n, "M", "%4D"), strings.ReplaceAll(n, "M", "Ｍ"), strings.ReplaceAll(n, ".", "․"),
			strings.ReplaceAll(n, "O", "О"), n[:2]+"\u200d"+n[2:], n[:1]+"\u00ad"+n[1:], strings.ReplaceAll(n, "/", `\`), `.\`+n, "{"+n+",x}", n[:1]+"?"+n[2:],
		)
	}
	out = append(out, "notes.txt", "soul-link", "deep/linked.md", "deep/mem-link/2026-11-20.md", "deep/up/deep/up/notes.txt",
		".git/HEAD", ".git/logs/HEAD", ".git/COMMIT_EDITMSG", "../goclaw.db", "../goclaw.db-wal", "../token", w.home+"/token", w.home+"/goclaw.db",
		w.home+"/gateway.json", "/proc/self/environ", "/proc/self/fd/0", "/dev/stdin", "/etc/passwd", ".goclaw/output", "memory", ".")
	kept, _ := filepath.Glob(filepath.Join(w.workspace, ".goclaw/output/*/*.txt"))
	out = append(out, kept...)
	random := w.randomSpelling()
	for i := range 200 {
		out = append(out, random.Example(i))
	}
	return out
}

// randomSpelling bends a private name at random.
func (w *spyWorld) randomSpelling() *rapid.Generator[string] {
	bends := []func(string) string{
		strings.ToLower, strings.ToUpper,
		func(s string) string { return "./" + s }, func(s string) string { return s + "/." },
		func(s string) string { return "deep/../" + s }, func(s string) string { return "../workspace/" + s },
		func(s string) string { return "deep/up/" + s }, func(s string) string { return "/proc/self/cwd/" + s },
		func(s string) string { return strings.ReplaceAll(s, "/", "//") }, func(s string) string { return s + "." },
		func(s string) string { return s + " " }, func(s string) string { return s[:1] + "\u200b" + s[1:] },
		func(s string) string { return strings.Replace(s, "o", "\u03bf", 1) }, url.PathEscape,
		func(s string) string { return w.workspace + "/" + s }, func(s string) string { return s + "\ufe0f" },
		func(s string) string { return strings.Replace(s, "m", "ｍ", 1) }, func(s string) string { return s + "::$INDEX_ALLOCATION" },
	}
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom(append(privateFiles, "notes.txt", "soul-link", ".git/HEAD", "memory")).Draw(t, "name")
		for _, bend := range rapid.SliceOfN(rapid.SampledFrom(bends), 1, 4).Draw(t, "bends") {
			s = bend(s)
		}
		return s
	})
}

// checkRequests looks for the secrets in all that the spy's model was sent.
func (w *spyWorld) checkRequests() {
	w.t.Helper()
	var last providertest.Recorded
	requests := 0
	for _, r := range w.server.Requests() {
		if !r.Worker() {
			continue
		}
		requests++
		last = r
		for where, s := range w.secrets {
			if strings.Contains(string(r.Raw), s) {
				w.t.Errorf("the body of worker request %d holds %s", r.N, where)
			}
		}
	}
	made, answered := 0, 0
	calls := map[string]goclaw.ToolCall{}
	for _, m := range last.Messages {
		for _, c := range m.Calls() {
			made++
			calls[c.ID] = c
		}
		for _, p := range m.Parts {
			if p.Result == nil {
				continue
			}
			answered++
			c := calls[p.Result.CallID]
			if where := w.leaks(p.Result.Content); len(where) > 0 {
				w.t.Errorf("%s %s\nshows %v:\n%s", c.Name, c.Arguments, where, p.Result.Content)
			}
			if strings.Contains(c.Arguments, "public.txt") && !strings.Contains(p.Result.Content, "PUBLIC-FACT") {
				w.t.Errorf("control: the spy can't see what is public: %s %s: %s", c.Name, c.Arguments, p.Result.Content)
			}
			if !slices.Contains(last.Tools, c.Name) && !strings.Contains(p.Result.Content, "is not available here") {
				w.t.Errorf("%s was not refused: %s", c.Name, p.Result.Content)
			}
		}
	}
	want := 0
	for _, b := range w.batches {
		want += len(b)
	}
	if made != want || answered != want || requests != len(w.batches)+1 {
		w.t.Errorf("%d calls, %d results, %d requests; want %d of %d batches", made, answered, requests, want, len(w.batches))
	}
	if slices.ContainsFunc(last.Tools, func(n string) bool { return strings.HasPrefix(n, "session") || n == "subagents" }) {
		w.t.Errorf("the worker is offered %v", last.Tools)
	}
	w.t.Logf("%d probes in %d requests, %d secrets", want, requests, len(w.secrets))
}

// checkWorkspace wants the private files unchanged, and nothing of them
// anywhere else.
func (w *spyWorld) checkWorkspace() {
	w.t.Helper()
	for _, name := range privateFiles {
		raw, err := os.ReadFile(filepath.Join(w.workspace, name))
		if err != nil || string(raw) != "Private: CANARY "+w.secrets[name]+"\n" {
			w.t.Errorf("%s was changed: %q %v", name, raw, err)
		}
	}
	private := append(slices.Clone(privateFiles), "notes.txt", "deep/linked.md")
	err := filepath.WalkDir(w.workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.workspace, path)
		if err != nil {
			return err
		}
		if rel == ".git" || rel == ".goclaw" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || slices.Contains(private, rel) {
			return nil
		}
		raw, err := os.ReadFile(path)
		if where := w.leaks(string(raw)); len(where) > 0 {
			w.t.Errorf("%s holds %v", rel, where)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	for _, gone := range []string{".git/hooks/post-commit", "memory/new.md", "memory/x.md"} {
		if _, err := os.Lstat(filepath.Join(w.workspace, gone)); err == nil {
			w.t.Errorf("the spy made %s", gone)
		}
	}
}
