package recall_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/recall/sqlite"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/recall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mainKey = goclaw.MainKey("main")

// record is a store of turns.
type record struct {
	mu     sync.Mutex
	runs   []goclaw.Run // oldest first
	events map[string][]goclaw.Event
	gone   map[goclaw.SessionKey]bool
	paused atomic.Bool
}

// turn records what a person said and what was answered; "" leaves it open.
func (r *record) turn(key goclaw.SessionKey, said, answer string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(len(r.runs) + 1)
	run := goclaw.Run{ID: fmt.Sprintf("run-%d", n), Ordinal: n, Session: key, Trigger: goclaw.TriggerUser, State: goclaw.StateRunning, CreatedAt: goclaw.At(time.Now())}
	if key.IsWorker() {
		run.Trigger = goclaw.TriggerSpawn
		if key.Kind == goclaw.KindCron {
			run.Trigger = goclaw.TriggerCron
		}
	}
	r.runs = append(r.runs, run)
	r.events[run.ID] = []goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, "<turn_context>\nMonday | via chat\n</turn_context>\n\n"+said)}}}
	if answer != "" {
		r.end(n, answer)
	}
	return run.ID
}

func (r *record) end(n int64, answer string) {
	id := r.runs[n-1].ID
	r.runs[n-1].State = goclaw.StateCompleted
	r.events[id] = append(r.events[id], goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, answer)}},
		goclaw.Event{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: answer}})
}

func (r *record) Run(_ context.Context, id string) (goclaw.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if run.ID == id {
			return run, nil
		}
	}
	return goclaw.Run{}, goclaw.ErrNotFound
}

func (r *record) Runs(_ context.Context, f goclaw.RunFilter) ([]goclaw.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []goclaw.Run
	for _, run := range slices.Backward(r.runs) {
		if run.Ordinal > f.After && (!f.Active || !run.State.Ended()) && (!f.Ended || run.State.Ended()) &&
			(len(f.Triggers) == 0 || slices.Contains(f.Triggers, run.Trigger)) && (f.Limit == 0 || len(found) < f.Limit) {
			found = append(found, run)
		}
	}
	return found, nil
}

func (r *record) Events(_ context.Context, run string) ([]goclaw.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[run]), nil
}

func (r *record) Session(_ context.Context, key goclaw.SessionKey) (goclaw.Session, error) {
	if r.gone[key] {
		return goclaw.Session{}, goclaw.ErrNotFound
	}
	return goclaw.Session{Key: key}, nil
}

func (r *record) Paused(context.Context) (goclaw.Pause, error) {
	if r.paused.Load() {
		return goclaw.Pause{At: 1}, nil
	}
	return goclaw.Pause{}, nil
}

// place is a memory with a workspace.
type place struct {
	*recall.Memory
	t      *testing.T
	dir    string
	index  string
	record *record
	embed  *embedder
	now    time.Time // of the questions; zero: the machine's
}

func newPlace(t *testing.T, embed *embedder) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), record: &record{events: map[string][]goclaw.Event{}, gone: map[goclaw.SessionKey]bool{}}, embed: embed}
	p.index = filepath.Join(t.TempDir(), "memory.db")
	o := recall.Options{
		Index: sqlite.New(p.index, nil), Files: workspace.Memories{}, Record: p.record,
		Workspaces: map[string]string{"main": p.dir, "other": t.TempDir()}, Zone: time.UTC,
	}
	if embed != nil {
		o.Embedder = embed
		o.Index = telling{sqlite.New(p.index, nil), embed.kept}
	}
	p.Memory = recall.New(o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// ask returns the paths that were found for the main session, and the note.
func (p *place) ask(text string) ([]string, string) {
	p.t.Helper()
	return p.askAs(goclaw.Access{Session: mainKey}, text)
}

func (p *place) askAs(a goclaw.Access, text string) ([]string, string) {
	p.t.Helper()
	now := p.now
	if now.IsZero() {
		now = time.Now()
	}
	found, err := p.Search(p.t.Context(), goclaw.MemoryQuery{Agent: "main", Text: text, Access: a, Now: goclaw.At(now)})
	if err != nil {
		p.t.Fatal(err)
	}
	var paths []string
	for _, h := range found.Hits {
		paths = append(paths, h.Path)
	}
	return paths, found.Note
}

func (p *place) finds(text string, want ...string) {
	p.t.Helper()
	got, _ := p.ask(text)
	for _, w := range want {
		if !slices.Contains(got, w) {
			p.t.Errorf("%q found %q, not %s", text, got, w)
		}
	}
	if len(want) == 0 && len(got) > 0 {
		p.t.Errorf("%q found %q", text, got)
	}
}

// What is saved is found at once, what is changed by its new words, what is
// deleted not at all.
func TestNotesComeAndGo(t *testing.T) {
	p := newPlace(t, nil)
	p.finds("zucchini")
	p.write("MEMORY.md", "# What lasts\n\nAnn is allergic to zucchini.\n")
	p.write("memory/2026-11-20.md", "The zucchini seeds came.\n")
	p.write("memory/trips/rome.md", "Zucchini flowers near the station.\n")
	p.write("memory/not-a-note.txt", "zucchini")
	p.write("USER.md", "zucchini")
	p.finds("zucchini", "MEMORY.md", "memory/2026-11-20.md", "memory/trips/rome.md")
	if got, _ := p.ask("zucchini"); len(got) != 3 {
		t.Errorf("%q", got)
	}
	p.write("memory/2026-11-20.md", "The pumpkin seeds came.\n")
	p.finds("pumpkin", "memory/2026-11-20.md")
	if err := os.Remove(filepath.Join(p.dir, "memory/trips/rome.md")); err != nil {
		t.Fatal(err)
	}
	if got, _ := p.ask("zucchini"); !slices.Equal(got, []string{"MEMORY.md"}) {
		t.Errorf("%q", got)
	}
	if _, err := p.Search(t.Context(), goclaw.MemoryQuery{Agent: "main", Text: " ", Access: goclaw.Access{Session: mainKey}}); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if _, err := p.Search(t.Context(), goclaw.MemoryQuery{Agent: "nobody", Text: "x"}); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if _, err := p.Search(t.Context(), goclaw.MemoryQuery{Agent: "main", Text: "x", Sources: []goclaw.MemorySource{"all"}, Access: goclaw.Access{Session: mainKey}}); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
}

// An index that a disk has spoilt is made anew by the search that meets it, and
// that is said.
func TestDamagedIndex(t *testing.T) {
	p := newPlace(t, nil)
	for i := range 100 {
		p.write(fmt.Sprintf("memory/%d.md", i), strings.Repeat("A long day at sea. ", 50))
	}
	p.write("MEMORY.md", "Ann is allergic to zucchini.\n")
	p.finds("zucchini", "MEMORY.md")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(p.index)
	if err != nil {
		t.Fatal(err)
	}
	const pages = 16 * 4096 // the schema, and the roots of the tables
	copy(data[pages:], strings.Repeat("\xaa", len(data)-pages))
	if err := os.WriteFile(p.index, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, note := p.ask("zucchini"); !slices.Equal(got, []string{"MEMORY.md"}) || !strings.Contains(note, "damaged") {
		t.Errorf("%q, %q", got, note)
	}
	if got, note := p.ask("zucchini"); !slices.Equal(got, []string{"MEMORY.md"}) || note != "" {
		t.Errorf("once more: %q, %q", got, note)
	}
}

// A hit names the lines of the file that it was found in.
func TestLines(t *testing.T) {
	p := newPlace(t, nil)
	p.write("memory/a.md", "# Garden\n\n## Shed\n\nThe lock jams.\n\n## Beds\n\n<!-- memory 12ab -->\nThe walnut tree was cut back.\n")
	found, err := p.Search(t.Context(), goclaw.MemoryQuery{Agent: "main", Text: "walnut", Access: goclaw.Access{Session: mainKey}})
	if err != nil || len(found.Hits) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	h := found.Hits[0]
	if h.Line != 10 || h.EndLine != 10 || h.Snippet != "Garden > Beds\nThe walnut tree was cut back." || h.Score <= 0 || h.Score > 1 || h.Source != goclaw.MemoryFiles {
		t.Errorf("%+v", h)
	}
	for _, tt := range []struct {
		from, lines int
		want        string
	}{{10, 1, "The walnut tree was cut back."}, {0, 1, "# Garden"}, {9, 0, "<!-- memory 12ab -->\nThe walnut tree was cut back."}} {
		got, err := p.Excerpt(t.Context(), "main", goclaw.Access{Session: mainKey}, "memory/a.md", tt.from, tt.lines)
		if err != nil || got.Text != tt.want || got.Of != 10 {
			t.Errorf("%+v: %+v, %v", tt, got, err)
		}
	}
	for _, path := range []string{"memory/none.md", "SOUL.md", "memory/../SOUL.md", "/etc/passwd", "", "memory", "session:x", "session:agent:main:main#none", "memory/a.md\x00"} {
		if got, err := p.Excerpt(t.Context(), "main", goclaw.Access{Session: mainKey}, path, 0, 0); err == nil {
			t.Errorf("%q: %+v", path, got)
		}
	}
	if _, err := p.Excerpt(t.Context(), "main", goclaw.Access{Session: mainKey}, "memory/a.md", 11, 1); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
}

// Turns are indexed once they have ended, in whatever order they end; what
// workers do never is.
func TestTurns(t *testing.T) {
	p := newPlace(t, nil)
	first := p.record.turn(mainKey, "the wifi password is swordfish", "")
	second := p.record.turn(goclaw.APIKey("main", "ann"), "swordfish again", "noted")
	p.record.turn(goclaw.SubagentKey("main", "w"), "swordfish for a worker", "swordfish")
	p.record.turn(goclaw.CronKey("main", "j"), "swordfish by cron", "swordfish")
	p.finds("swordfish", "session:agent:main:api:user:ann#"+second)
	if got, _ := p.ask("swordfish"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	for range 50 { // the mark must not pass the open turn
		p.record.turn(mainKey, "filler", "filler")
	}
	p.ask("filler")
	p.record.mu.Lock()
	p.record.end(1, "I'll keep it")
	p.record.mu.Unlock()
	p.finds("swordfish", "session:agent:main:main#"+first, "session:agent:main:api:user:ann#"+second)
	text, err := p.Excerpt(t.Context(), "main", goclaw.Access{Session: mainKey}, "session:agent:main:main#"+first, 0, 0)
	if err != nil || text.Text != "User: the wifi password is swordfish\n\nAssistant: I'll keep it" {
		t.Errorf("%+v, %v", text, err)
	}
	s, err := p.Status(t.Context(), "main")
	if err != nil || s.Turns != 52 || s.UpdatedAt == 0 {
		t.Errorf("%+v, %v", s, err)
	}

	// A session that is removed leaves the index.
	p.record.gone[goclaw.APIKey("main", "ann")] = true
	if got, _ := p.ask("swordfish"); !slices.Equal(got, []string{"session:agent:main:main#" + first}) {
		t.Errorf("%q", got)
	}
	// Another database does, too.
	p.record.mu.Lock()
	p.record.runs = p.record.runs[:1]
	p.record.mu.Unlock()
	if s, err := p.Status(t.Context(), "main"); err != nil || s.Turns != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	p.finds("swordfish", "session:agent:main:main#"+first)
}

// Who asks decides what is found: access.go has the rules.
func TestWhoMaySeeWhat(t *testing.T) {
	p := newPlace(t, nil)
	p.write("MEMORY.md", "heron one\n")
	p.write("memory/plan.md", "heron two\n")
	p.write("memory/diary.md", "heron three\n")
	mine := goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "telegram", PeerKind: "group", Peer: "7"}
	own := p.record.turn(mine, "heron in the group", "yes")
	private := p.record.turn(mainKey, "heron in private", "yes")
	notes := []string{"MEMORY.md", "memory/diary.md", "memory/plan.md"}
	ownPath, privatePath := "session:"+mine.String()+"#"+own, "session:agent:main:main#"+private
	worker := goclaw.SubagentKey("main", "w")
	for name, tt := range map[string]struct {
		access goclaw.Access
		want   []string
	}{
		"main":                 {goclaw.Access{Session: mainKey}, append(slices.Clone(notes), ownPath, privatePath)},
		"a group":              {goclaw.Access{Session: mine}, append(slices.Clone(notes), ownPath)},
		"a lifted file":        {goclaw.Access{Session: worker, Strict: true, Named: []string{"memory/plan.md"}}, []string{"memory/plan.md"}},
		"a lifted folder":      {goclaw.Access{Session: worker, Strict: true, Named: []string{"memory"}}, []string{"memory/diary.md", "memory/plan.md"}},
		"a worker, not strict": {goclaw.Access{Session: worker}, notes},
	} {
		got, _ := p.askAs(tt.access, "heron")
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		for _, path := range append(slices.Clone(notes), ownPath, privatePath) {
			text, err := p.Excerpt(t.Context(), "main", tt.access, path, 0, 0)
			if (err == nil) != slices.Contains(tt.want, path) || err != nil && text.Text != "" {
				t.Errorf("%s reads %s: %+v, %v", name, path, text, err)
			}
		}
	}
	for name, a := range map[string]goclaw.Access{
		"a worker":                {Session: worker, Strict: true},
		"a worker shown AGENTS":   {Session: worker, Strict: true, Named: []string{"AGENTS.md", "USER.md"}},
		"a cron run":              {Session: goclaw.CronKey("main", "j"), Strict: true},
		"a worker asks for turns": {Session: worker, Strict: true, Named: []string{"MEMORY.md"}},
	} {
		q := goclaw.MemoryQuery{Agent: "main", Text: "heron", Access: a}
		if len(a.Named) == 1 {
			q.Sources = []goclaw.MemorySource{goclaw.MemoryTranscripts}
		}
		found, err := p.Search(t.Context(), q)
		if !goclaw.IsBadRequest(err) || len(found.Hits) > 0 || strings.Contains(err.Error(), "heron") {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func TestProblems(t *testing.T) {
	p := newPlace(t, nil)
	p.write("memory/fine.md", "fine")
	p.write("memory/latin.md", "caf\xe9")
	p.write("memory/big.md", strings.Repeat("big words\n", 500_000))
	if err := os.Symlink("/etc/hostname", filepath.Join(p.dir, "memory/out.md")); err != nil {
		t.Skip(err)
	}
	for range 2 { // also when nothing has changed
		s, err := p.Status(t.Context(), "main")
		want := []string{
			"memory/big.md has 4.8 MB and is not searched; split it into files of at most 4 MB",
			"memory/latin.md is not UTF-8: 1 bytes can't be read, and it is not searched; save it as UTF-8",
			"memory/out.md is a link that leaves the workspace; it was not followed",
		}
		if err != nil || s.Files != 1 || !slices.Equal(s.Problems, want) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
}

func TestReindex(t *testing.T) {
	e := &embedder{}
	p := newPlace(t, e)
	p.write("MEMORY.md", "one\n")
	p.record.turn(mainKey, "two", "three")
	for range 2 {
		all, err := p.Reindex(t.Context())
		if err != nil || len(all) != 2 || all[0].Agent != "main" || all[0].Files != 1 || all[0].Turns != 1 || all[0].Chunks != 2 || all[0].Embedded != 2 || all[0].Vectors != "sqlite-vec" {
			t.Fatalf("%+v, %v", all, err)
		}
	}
	if e.texts != 2 {
		t.Errorf("%d texts were embedded, though none had changed", e.texts)
	}
}

// Each question finds its note by full text and the built-in thesaurus alone.
func TestQuestions(t *testing.T) {
	p := newPlace(t, nil)
	p.now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const yesterday = "2026-11-20"
	p.write("memory/"+yesterday+".md", "Signed the lease with Mr Müller.\n")
	p.write("memory/2026-03-01.md", "# Flat\n\nThe boiler was mended; the bill is 480 €.\n")
	p.write("memory/people.md", "## Doctor\n\nDr Weber, Tuesdays.\n\n## Straße\n\nHauptstraße 5.\n")
	p.write("memory/haus.md", "Die Haustürschlüssel liegen im Flur. Der Rauchmelder piept. 🎉 am Samstag.\n")
	p.write("memory/code.md", "parseConfig fails on 東京都 paths; see port 8080.\n")
	for text, want := range map[string]string{
		"Wo sind die Schlüssel?": "memory/haus.md",
		"Rauchmelderbatterie":    "memory/haus.md",
		"🎉":                      "memory/haus.md",
		"boiler " + strings.Repeat("q7 zz9 ", 2000): "memory/2026-03-01.md",
		"what happened yesterday?":                  "memory/" + yesterday + ".md",
		"who repaired the heater":                   "memory/2026-03-01.md",
		"when can I see a physician":                "memory/people.md",
		"Mueller":                                   "memory/" + yesterday + ".md",
		"muller":                                    "memory/" + yesterday + ".md",
		"HAUPTSTRASSE":                              "memory/people.md",
		"the boilre":                                "memory/2026-03-01.md",
		"config parsing":                            "memory/code.md",
		"京都":                                        "memory/code.md",
		"8080":                                      "memory/code.md",
		`"see port 8080"`:                           "memory/code.md",
		"what did I note in March 2026":             "memory/2026-03-01.md",
		"what about 2026-03-01":                     "memory/2026-03-01.md",
		"the":                                       "memory/2026-03-01.md",
		`"; DROP TABLE doc; -- boiler`:              "memory/2026-03-01.md",
		"boiler NEAR( OR AND * ^ \x00 \xff {":       "memory/2026-03-01.md",
	} {
		if got, _ := p.ask(text); len(got) == 0 || got[0] != want {
			t.Errorf("%q found %q, want %s", text, got, want)
		}
	}
}
