package recall_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"goclaw/internal/edge/recall/sqlite"
)

// telling is an index that tells when vectors were kept.
type telling struct {
	*sqlite.Index
	kept chan struct{} // nil: nobody is told
}

func (x telling) PutVectors(ctx context.Context, model string, vectors map[string][]float32) error {
	err := x.Index.PutVectors(ctx, model, vectors)
	if x.kept != nil {
		x.kept <- struct{}{}
	}
	return err
}

// embedder counts letters: texts with like letters are alike.
type embedder struct {
	mu      sync.Mutex
	texts   int
	fail    error
	letters int           // of the alphabet; 0: 26
	grows   bool          // by one with each answer
	kept    chan struct{} // gets a word for each batch that was kept
}

func (e *embedder) Model() string { return "fake/letters" }

func (e *embedder) set(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

func (e *embedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		return nil, e.fail
	}
	e.texts += len(texts)
	if e.grows {
		e.letters++
	}
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		vectors[i] = make([]float32, cmp.Or(e.letters, 26))
		for _, c := range strings.ToLower(t) {
			if c >= 'a' && c <= 'z' {
				vectors[i][c-'a']++
			}
		}
	}
	return vectors, nil
}

// New chunks are embedded in the background; a model that fails leaves full
// text, and says so.
func TestEmbedding(t *testing.T) {
	e := &embedder{kept: make(chan struct{}, 16)}
	p := newPlace(t, e)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	defer func() { stop(); running.Wait() }()
	p.write("memory/a.md", "The kettle whistles.\n")
	p.write("memory/b.md", "Qqq zzz jjj.\n")
	p.finds("kettle", "memory/a.md")
	<-e.kept
	if got, note := p.ask("zzzjjjqqq"); len(got) == 0 || got[0] != "memory/b.md" || note != "" {
		t.Errorf("by likeness: %q %s", got, note)
	}
	e.set(errors.New("HTTP 503 overloaded"))
	got, note := p.ask("kettle")
	if len(got) == 0 || got[0] != "memory/a.md" || note != "searched without embedding model fake/letters: HTTP 503 overloaded" {
		t.Errorf("%q, %q", got, note)
	}
	s, err := p.Status(t.Context(), "main")
	if err != nil || s.Embedding != "fake/letters" || s.Embedded != 2 || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "HTTP 503 overloaded") {
		t.Errorf("%+v, %v", s, err)
	}
	e.set(nil)
	p.record.paused.Store(true)
	if got, note := p.ask("kettle"); len(got) == 0 || !strings.Contains(note, "model calls are paused") {
		t.Errorf("%q, %q", got, note)
	}
}

// A model that gives vectors of another length than before is asked again for
// all chunks; one that can't make up its mind is complained of, and one that
// answers again is not.
func TestEmbeddingChanges(t *testing.T) {
	e := &embedder{letters: 26}
	p := newPlace(t, e)
	p.write("memory/a.md", "The kettle whistles.\n")
	p.write("memory/b.md", "Qqq zzz jjj.\n")
	embedded := func(texts int, problem string) {
		t.Helper()
		all, err := p.Reindex(t.Context())
		if err != nil || e.texts != texts || len(all[0].Problems) > 0 != (problem != "") || problem != "" && !strings.Contains(all[0].Problems[0], problem) {
			t.Errorf("%d texts, %+v, %v", e.texts, all[0], err)
		}
	}
	embedded(2, "")
	e.letters = 30
	if got, note := p.ask("zzzjjjqqq"); len(got) > 0 || note != "" {
		t.Errorf("%q, %q", got, note)
	}
	embedded(5, "") // with the question
	if got, _ := p.ask("zzzjjjqqq"); len(got) == 0 || got[0] != "memory/b.md" {
		t.Errorf("%q", got)
	}
	e.set(errors.New("HTTP 503 overloaded"))
	p.ask("kettle")
	embedded(6, "overloaded")
	e.set(nil)
	p.ask("kettle")
	embedded(7, "")
	e.grows = true
	var more strings.Builder
	for i := range 100 {
		fmt.Fprintf(&more, "# %d\n\nMore.\n\n", i)
	}
	p.write("memory/c.md", more.String())
	embedded(e.texts+64, "vectors of 31 numbers, then of 32")
}
