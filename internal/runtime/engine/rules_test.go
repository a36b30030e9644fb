package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/runtime/engine"
)

// A definition of OpenCode's that lets its worker change one folder: no
// spelling and no link leads it to another.
func TestRulesHoldForPlaces(t *testing.T) {
	var results []string
	w := newWired(t, providertest.WireAnthropic, func(q *providertest.Request) providertest.Answer {
		switch {
		case q.Worker() && len(q.NewestResults()) == 0:
			var calls []providertest.Call
			for _, path := range []string{"docs/a.md", "./docs/../docs/b.md", "src/c.md", "docs/../src/d.md", "docs/out/e.md"} {
				calls = append(calls, providertest.Call{Name: "write", Arguments: `{"path":"` + path + `","content":"x"}`})
			}
			return providertest.Answer{Calls: calls}
		case q.Worker():
			for _, r := range q.NewestResults() {
				results = append(results, r.Content)
			}
			return providertest.Answer{Text: "done"}
		case strings.HasSuffix(q.NewestText(), "go"):
			return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: `{"agent":"writer","task":"x"}`}}}
		}
		return providertest.Answer{Text: "ok"}
	}, func(o *engine.Options) {
		o.Rules.Definitions = catalogOf(t, map[string]string{
			"w.md": "---\nname: writer\ndescription: x\npermissions:\n- {action: edit, resource: '*', effect: deny}\n- {action: edit, resource: 'docs/**', effect: allow}\n---\nYou write.",
		})
	})
	for _, dir := range []string{"docs", "src"} {
		if err := os.MkdirAll(filepath.Join(w.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../src", filepath.Join(w.dir, "docs", "out")); err != nil {
		t.Skip(err)
	}
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	w.turn(goclaw.TriggerUser, "go")
	if run := w.worker("writer"); run.State != goclaw.StateCompleted {
		t.Fatalf("%s: %s", run.State, run.Error)
	}
	if len(results) != 5 {
		t.Fatalf("results: %q", results)
	}
	for i, want := range []string{"created", "created", `does not allow \"src/c.md\"`, `does not allow \"src/d.md\"`, `does not allow \"src/e.md\"`} {
		if !strings.Contains(results[i], want) {
			t.Errorf("write %d: %s", i, results[i])
		}
	}
	for _, name := range []string{"c.md", "d.md", "e.md"} {
		if _, err := os.Stat(filepath.Join(w.dir, "src", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("src/%s: %v", name, err)
		}
	}
}
