package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/engine"
)

// heavy is an engine over a workspace whose eight files have 20 KB each.
func heavy(tb testing.TB) (*engine.Engine, *workspace.Loader) {
	tb.Helper()
	dir := tb.TempDir()
	text := strings.Repeat("Work is done as it was agreed upon, and said.\n", 20_000/46)
	old := time.Now().Add(-time.Hour) // files that were just written are read twice
	for _, name := range workspace.Names() {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("# "+name+"\n"+text), 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			tb.Fatal(err)
		}
	}
	r := rules(rigOptions{})
	main := r.Agents["main"]
	main.Workspace = dir
	r.Agents = map[string]definition.Agent{"main": main}
	loader := workspace.NewLoader(workspace.Options{TotalMaxChars: 1_000_000})
	e, err := engine.New(engine.Options{Store: memory.Open(), Files: loader, Rules: r, NewID: uuid.NewString, Zone: time.UTC})
	if err != nil {
		tb.Fatal(err)
	}
	return e, loader
}

func promptOf(tb testing.TB, e *engine.Engine) goclaw.Prompt {
	p, err := e.Explain(tb.Context(), goclaw.ContextQuery{Session: goclaw.MainKey("main")})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// An unchanged workspace is neither read nor assembled again.
func TestUnchangedPromptCostsNothing(t *testing.T) {
	e, loader := heavy(t)
	first := promptOf(t, e)
	reads := loader.Reads()
	size := 0
	for _, s := range first.Sections {
		size += len(s.Text)
	}
	if reads != 8 || size < 8*19_000 {
		t.Fatalf("%d files were read, the prompt has %d bytes", reads, size)
	}
	again := promptOf(t, e)
	if loader.Reads() != reads || &again.Sections[0] != &first.Sections[0] {
		t.Errorf("%d reads of unchanged files; assembled anew: %v", loader.Reads()-reads, &again.Sections[0] != &first.Sections[0])
	}
	if spent := testing.AllocsPerRun(20, func() { promptOf(t, e) }); spent > 200 {
		t.Errorf("%.0f allocations for a prompt that is there", spent)
	}
}

// BenchmarkPromptUnchanged is what a turn pays for its prompt while nobody
// changes a file: at most 200 µs.
func BenchmarkPromptUnchanged(b *testing.B) {
	e, loader := heavy(b)
	promptOf(b, e)
	reads := loader.Reads()
	b.ReportAllocs()
	for b.Loop() {
		promptOf(b, e)
	}
	if loader.Reads() != reads {
		b.Errorf("%d reads of unchanged files", loader.Reads()-reads)
	}
}
