package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/engine"
)

// wired is an engine with the real tools, files and providers, and a model
// server that speaks the real wire.
type wired struct {
	t      *testing.T
	engine *engine.Engine
	store  *memory.Store
	server *providertest.Server
	loader *workspace.Loader
	dir    string
}

func newWired(t *testing.T, wire string, script providertest.Script, change func(*engine.Options)) *wired {
	t.Helper()
	w := &wired{t: t, store: memory.Open(), server: providertest.New(script, providertest.WithCache()), loader: workspace.NewLoader(workspace.Options{}), dir: t.TempDir()}
	if _, err := workspace.Prepare(w.dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range workspace.Names() { // files that were just written are read twice
		if err := os.Chtimes(filepath.Join(w.dir, name), time.Now(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	url, err := w.server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Close)
	var p goclaw.Provider
	if wire == providertest.WireAnthropic {
		a := anthropic.New(anthropic.Options{APIKey: "k", BaseURL: url})
		t.Cleanup(a.CloseIdleConnections)
		p = a
	} else {
		o := openai.New(openai.Options{APIKey: "k", BaseURL: url + "/v1"})
		t.Cleanup(o.CloseIdleConnections)
		p = o
	}
	worker := []string{"read", "write", "edit", "ls", "grep", "glob"}
	all := append([]string{"sessions_spawn", "spawn_agent", "subagents", "sessions_list", "sessions_history", "session_status"}, worker...)
	o := engine.Options{
		Store: w.store, Models: oneModel{p}, Files: w.loader, Tools: file.Tools(file.Options{}),
		Rules: definition.Rules{
			Agents: map[string]definition.Agent{"main": {
				ID: "main", Workspace: w.dir, Model: wire + "/m",
				Subagents: definition.Subagents{MaxSpawnDepth: 1, MaxChildren: 5},
			}},
			Tools: all, WorkerTools: worker, SpawnTools: sessions.SpawnTools(),
			MainFiles: prompt.MainFiles(), WorkerFiles: prompt.WorkerFiles(),
			ResolveModel: func(m string) (string, error) { return m, nil },
		},
		Owner: "p", SoleOwner: true, Announce: announce.Policy{Window: time.Millisecond, MaxWait: time.Minute, Attempts: 3, Backoff: time.Second},
		Facts: prompt.Facts{Host: "box", OS: "linux/amd64"}, NewID: uuid.NewString, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	if w.engine, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	for _, tool := range sessions.Tools(w.engine, w.store, w.store) {
		if err := w.engine.AddTool(tool); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

type oneModel struct{ p goclaw.Provider }

func (m oneModel) Provider(name string) (goclaw.Provider, string, error) {
	return m.p, strings.SplitN(name, "/", 2)[1], nil
}

// turn lets a turn of the main session happen, with all that it leads to.
func (w *wired) turn(trigger goclaw.Trigger, text string) {
	w.t.Helper()
	profile, err := w.engine.Explain(w.t.Context(), goclaw.ContextQuery{Session: goclaw.MainKey("main")})
	if err != nil {
		w.t.Fatal(err)
	}
	if trigger == goclaw.TriggerUser {
		if _, err := w.engine.Submit(w.t.Context(), goclaw.Inbound{Session: goclaw.MainKey("main"), Text: text}); err != nil {
			w.t.Fatal(err)
		}
	} else {
		runs, err := w.store.Runs(w.t.Context(), goclaw.RunFilter{Session: goclaw.MainKey("main"), Limit: 1})
		if err != nil || len(runs) == 0 {
			w.t.Fatal(err, profile.Model)
		}
		_, _, err = w.engine.Accept(w.t.Context(), goclaw.Acceptance{Run: goclaw.Run{
			Session: goclaw.MainKey("main"), Trigger: trigger, Task: text, Profile: runs[0].Profile,
		}})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.settle()
}

// settle waits until no run is unended and no announcement is on its way.
func (w *wired) settle() {
	w.t.Helper()
	for range 60_000 {
		active, err := w.store.Runs(w.t.Context(), goclaw.RunFilter{Active: true})
		if err != nil {
			w.t.Fatal(err)
		}
		pending, err := w.store.Pending(w.t.Context(), goclaw.SessionKey{})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(active)+len(pending) == 0 {
			return
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal("the turn did not end")
		case <-time.After(time.Millisecond):
		}
	}
	w.t.Fatal("the runs did not settle")
}

// Fifty turns of all kinds: what a request holds before its new messages is,
// byte for byte, what the one before it held.
func TestPrefixHoldsThroughMixedTurns(t *testing.T) {
	for _, wire := range []string{providertest.WireAnthropic, providertest.WireOpenAI} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			w := newWired(t, wire, func(q *providertest.Request) providertest.Answer {
				n := calls.Add(1)
				newest := q.NewestText()
				switch {
				case q.Worker():
					return providertest.Answer{Text: fmt.Sprintf("found %d things", n)}
				case len(q.NewestResults()) > 0:
					return providertest.Answer{Text: "done", Thinking: ""}
				case n%17 == 0:
					return providertest.Answer{Fault: providertest.Status(529, "0", "")}
				case strings.Contains(newest, "spawn"):
					return providertest.Answer{Text: "on it", Calls: []providertest.Call{
						{Name: "sessions_spawn", Arguments: `{"task":"look","label":"one"}`},
						{Name: "sessions_spawn", Arguments: `{"task":"see","label":"two","announce":"each"}`},
					}}
				case strings.Contains(newest, "read"):
					return providertest.Answer{Calls: []providertest.Call{
						{Name: "read", Arguments: `{"path":"AGENTS.md"}`}, {Name: "ls", Arguments: `{}`}, {Name: "nonsense", Arguments: `{`},
					}}
				case strings.Contains(newest, "heartbeat"), strings.Contains(newest, "cron"), strings.Contains(newest, "[Subagent"):
					return providertest.Answer{Text: "NO_REPLY"}
				}
				return providertest.Answer{Text: "Of course: é, “quotes”, <b>, \u2028 and 😀."}
			}, nil)
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			kinds := []struct {
				trigger goclaw.Trigger
				text    string
			}{
				{goclaw.TriggerUser, "hello"}, {goclaw.TriggerUser, "please read"}, {goclaw.TriggerHeartbeat, "heartbeat: look after things"},
				{goclaw.TriggerUser, "spawn two"}, {goclaw.TriggerCron, "cron: nightly"}, {goclaw.TriggerUser, "what <now> & then?"},
			}
			w.turn(kinds[0].trigger, kinds[0].text)
			read := w.loader.Reads()
			for i := 1; i < 50; i++ {
				w.turn(kinds[i%len(kinds)].trigger, kinds[i%len(kinds)].text)
			}
			if got := w.loader.Reads() - read; got != 0 {
				t.Errorf("%d files were read in turns that changed none", got)
			}
			var last *body
			compared := 0
			for _, r := range w.server.Requests() {
				if r.Worker() {
					continue
				}
				now := parse(t, r.Raw)
				if last != nil {
					last.isPrefixOf(t, now)
					compared++
				}
				last = now
			}
			if compared < 60 {
				t.Fatalf("only %d requests were compared", compared)
			}
			t.Logf("%d consecutive requests of 50 turns: all bytes before the new messages are identical", compared)
			rows, err := w.store.Usage(t.Context(), goclaw.UsageQuery{})
			if err != nil || len(rows) != 1 || rows[0].Usage.CacheRead*2 < rows[0].Usage.Input {
				t.Errorf("%+v, %v: most of the input should have come from the simulated cache", rows, err)
			}
		})
	}
}

var mark = regexp.MustCompile(`,?"cache_control":\{"type":"ephemeral"\}`)

// body is a request's body as the wire has it, without the marks that move.
type body struct {
	Tools    json.RawMessage   `json:"tools"`
	System   json.RawMessage   `json:"system"`
	Messages []json.RawMessage `json:"messages"`
}

func parse(t *testing.T, raw []byte) *body {
	t.Helper()
	var b body
	if err := json.Unmarshal(mark.ReplaceAll(raw, nil), &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

func (b *body) isPrefixOf(t *testing.T, next *body) {
	t.Helper()
	if !bytes.Equal(b.Tools, next.Tools) || !bytes.Equal(b.System, next.System) {
		t.Fatal("tools or system differ")
	}
	if len(next.Messages) < len(b.Messages) {
		t.Fatalf("%d messages follow on %d", len(next.Messages), len(b.Messages))
	}
	for i, m := range b.Messages {
		if !bytes.Equal(m, next.Messages[i]) {
			t.Fatalf("message %d differs:\n%s\n%s", i, m, next.Messages[i])
		}
	}
}

// Also a compaction, and what follows it, can be shown as it was sent.
func TestCompactionsAsSent(t *testing.T) {
	for _, wire := range []string{providertest.WireAnthropic, providertest.WireOpenAI} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			w := newWired(t, wire, func(q *providertest.Request) providertest.Answer {
				switch {
				case strings.HasPrefix(q.NewestText(), "<compaction_request>"):
					return providertest.Answer{Text: summaryReply}
				case len(q.NewestResults()) == 0 && strings.Contains(q.NewestText(), "read"):
					return providertest.Answer{Calls: []providertest.Call{{Name: "read", Arguments: `{"path":"long.md"}`}}}
				}
				return providertest.Answer{Text: "fine"}
			}, func(o *engine.Options) {
				a := o.Rules.Agents["main"]
				a.Compaction = definition.Compaction{Tokens: 9000, KeepRecent: 2000, MemoryFlush: true}
				o.Rules.Agents["main"] = a
				o.Notes = workspace.Notes{}
			})
			if err := os.WriteFile(filepath.Join(w.dir, "long.md"), []byte(strings.Repeat("a long line of words\n", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			for i := range 9 {
				w.turn(goclaw.TriggerUser, fmt.Sprintf("turn %d: read. %s", i, strings.Repeat("so ", 500)))
			}
			runs, err := w.store.Runs(t.Context(), goclaw.RunFilter{})
			if err != nil {
				t.Fatal(err)
			}
			var rebuilt []string
			summaries := 0
			for i := len(runs) - 1; i >= 0; i-- {
				for step := 1; ; step++ {
					sent, err := w.engine.AsSent(t.Context(), runs[i].ID, step)
					if err != nil {
						t.Fatal(err)
					}
					rebuilt = append(rebuilt, string(sent.Body))
					if strings.Contains(string(sent.Body), "compaction_request") {
						summaries++
					}
					if step == sent.Steps {
						break
					}
				}
			}
			requests := w.server.Requests()
			if len(rebuilt) != len(requests) || summaries == 0 {
				t.Fatalf("%d requests, %d on record, %d of them for a summary", len(requests), len(rebuilt), summaries)
			}
			for i, r := range requests {
				if string(r.Raw) != rebuilt[i] {
					t.Fatalf("request %d was sent as\n%s\nand is shown as\n%s", i, r.Raw, rebuilt[i])
				}
			}
			notes, err := os.ReadDir(filepath.Join(w.dir, "memory"))
			if err != nil || len(notes) != 1 {
				t.Fatalf("%v, %v", notes, err)
			}
			text, err := os.ReadFile(filepath.Join(w.dir, "memory", notes[0].Name()))
			if err != nil || strings.Count(string(text), "likes tea") != summaries {
				t.Errorf("%d summaries, and the note says %q, %v", summaries, text, err)
			}
		})
	}
}
