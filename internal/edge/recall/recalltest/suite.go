package recalltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw"
)

// Index is what the suite tests.
type Index interface {
	Docs(ctx context.Context, agent string, source goclaw.MemorySource) ([]goclaw.MemoryDoc, error)
	Put(ctx context.Context, d goclaw.MemoryDoc, chunks []goclaw.MemoryChunk) error
	Drop(ctx context.Context, agent string, paths []string) error
	Clear(ctx context.Context) error
	Mark(ctx context.Context) (int64, error)
	SetMark(ctx context.Context, ordinal int64) error
	Match(ctx context.Context, q goclaw.MemoryLookup) ([]goclaw.MemoryChunk, error)
	Frequencies(ctx context.Context, terms []string) (chunks, length int, has map[string]int, err error)
	Vocabulary(ctx context.Context) ([]string, error)
	Count(ctx context.Context, agent, model string) (goclaw.MemoryStatus, error)
	Unembedded(ctx context.Context, model string, length, limit int) ([]goclaw.MemoryChunk, error)
	PutVectors(ctx context.Context, model string, vectors map[string][]float32) error
	Nearest(ctx context.Context, q goclaw.MemoryLookup, model string, v []float32) ([]goclaw.MemoryNear, error)
	Close() error
}

// Run tests an index. open opens it anew and empty; again opens the same one
// once more.
func Run(t *testing.T, open func(t *testing.T) (x Index, again func() Index)) {
	t.Run("documents", func(t *testing.T) { documents(t, open) })
	t.Run("lookups", func(t *testing.T) { lookups(t, open) })
	t.Run("vectors", func(t *testing.T) { vectors(t, open) })
	t.Run("together", func(t *testing.T) { together(t, open) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func chunk(id, terms string) goclaw.MemoryChunk {
	return goclaw.MemoryChunk{ID: id, Title: "Title " + id, Text: "Text of " + id, Line: 3, EndLine: 7, Terms: terms, TitleTerms: "titl " + id}
}

func note(agent, path string, at goclaw.Millis) goclaw.MemoryDoc {
	return goclaw.MemoryDoc{Agent: agent, Source: goclaw.MemoryFiles, Path: path, Version: "v1 " + path, At: at, Bytes: 100}
}

func ids(chunks []goclaw.MemoryChunk) string {
	var all []string
	for _, c := range chunks {
		all = append(all, c.ID)
	}
	return strings.Join(all, " ")
}

func documents(t *testing.T, open func(t *testing.T) (Index, func() Index)) {
	x, again := open(t)
	ctx := t.Context()
	docs, err := x.Docs(ctx, "main", goclaw.MemoryFiles)
	if err != nil || len(docs) > 0 {
		t.Fatalf("%+v, %v", docs, err)
	}
	if mark, err := x.Mark(ctx); err != nil || mark != 0 {
		t.Fatalf("%d, %v", mark, err)
	}
	turn := goclaw.MemoryDoc{Agent: "main", Source: goclaw.MemoryTranscripts, Session: goclaw.APIKey("main", "a:b"), Path: "session:x#1", Version: "1", At: 7, Bytes: 9}
	must(t, x.Put(ctx, note("main", "b.md", 1), []goclaw.MemoryChunk{chunk("b1", "boat sea"), chunk("b2", "boat")}))
	must(t, x.Put(ctx, note("main", "a.md", 2), []goclaw.MemoryChunk{chunk("a1", "boat")}))
	must(t, x.Put(ctx, note("main", "empty.md", 2), nil))
	must(t, x.Put(ctx, note("other", "a.md", 3), []goclaw.MemoryChunk{chunk("o1", "boat")}))
	must(t, x.Put(ctx, turn, []goclaw.MemoryChunk{chunk("t1", "boat")}))
	must(t, x.SetMark(ctx, 41))
	must(t, x.SetMark(ctx, 42))
	must(t, x.Close())
	x = again()
	docs, err = x.Docs(ctx, "main", goclaw.MemoryFiles)
	if want := []goclaw.MemoryDoc{note("main", "a.md", 2), note("main", "b.md", 1), note("main", "empty.md", 2)}; err != nil || !slices.Equal(docs, want) {
		t.Errorf("%+v, %v", docs, err)
	}
	if docs, err = x.Docs(ctx, "main", goclaw.MemoryTranscripts); err != nil || len(docs) != 1 || docs[0] != turn {
		t.Errorf("%+v, %v", docs, err)
	}
	if mark, err := x.Mark(ctx); err != nil || mark != 42 {
		t.Errorf("%d, %v", mark, err)
	}
	s, err := x.Count(ctx, "main", "m")
	if err != nil || s.Files != 3 || s.Turns != 1 || s.Chunks != 4 || s.Bytes != 309 || s.Embedded != 0 {
		t.Errorf("%+v, %v", s, err)
	}

	// A document's chunks are replaced with it, and go with it.
	must(t, x.Put(ctx, note("main", "b.md", 5), []goclaw.MemoryChunk{chunk("b3", "ship")}))
	must(t, x.Drop(ctx, "main", []string{"a.md", "none.md"}))
	must(t, x.Drop(ctx, "main", nil))
	found, err := x.Match(ctx, goclaw.MemoryLookup{Agent: "main", Terms: []string{"boat", "ship"}, Limit: 10})
	if got := ids(found); err != nil || got != "b3 t1" && got != "t1 b3" {
		t.Errorf("%s, %v", got, err)
	}
	if chunks, _, has, err := x.Frequencies(ctx, []string{"boat", "ship", "sea", "none"}); err != nil || chunks != 3 || has["boat"] != 2 || has["ship"] != 1 || has["sea"] != 0 || has["none"] != 0 {
		t.Errorf("%d %v, %v", chunks, has, err)
	}
	must(t, x.Clear(ctx))
	if s, err := x.Count(ctx, "main", ""); err != nil || s.Files+s.Turns+s.Chunks != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if mark, err := x.Mark(ctx); err != nil || mark != 0 {
		t.Errorf("%d, %v", mark, err)
	}
}

func lookups(t *testing.T, open func(t *testing.T) (Index, func() Index)) {
	x, _ := open(t)
	ctx := t.Context()
	ann, bob := goclaw.APIKey("main", "ann"), goclaw.APIKey("main", "bob")
	must(t, x.Put(ctx, note("main", "a.md", 10), []goclaw.MemoryChunk{chunk("one", "boat sea wind wind"), chunk("two", "boat"), chunk("odd", "東京 o0 müller'x 🎉")}))
	must(t, x.Put(ctx, note("main", "b.md", 20), []goclaw.MemoryChunk{chunk("three", "wind")}))
	for i, key := range []goclaw.SessionKey{ann, bob} {
		must(t, x.Put(ctx, goclaw.MemoryDoc{Agent: "main", Source: goclaw.MemoryTranscripts, Session: key, Path: "session:" + key.String() + "#1", Version: "1", At: goclaw.Millis(30 + i)},
			[]goclaw.MemoryChunk{chunk(key.Peer, "wind")}))
	}
	for name, tt := range map[string]struct {
		q    goclaw.MemoryLookup
		want string // in no order
	}{
		"a term":         {goclaw.MemoryLookup{Terms: []string{"boat"}}, "one two"},
		"any term":       {goclaw.MemoryLookup{Terms: []string{"sea", "wind", "none"}}, "ann bob one three"},
		"a title":        {goclaw.MemoryLookup{Terms: []string{"two"}}, "two"},
		"notes":          {goclaw.MemoryLookup{Terms: []string{"wind"}, Sources: []goclaw.MemorySource{goclaw.MemoryFiles}}, "one three"},
		"turns":          {goclaw.MemoryLookup{Terms: []string{"wind"}, Sources: []goclaw.MemorySource{goclaw.MemoryTranscripts}}, "ann bob"},
		"one session":    {goclaw.MemoryLookup{Terms: []string{"wind"}, Session: ann}, "ann one three"},
		"a time":         {goclaw.MemoryLookup{From: 20, Until: 31}, "ann three"},
		"a term in time": {goclaw.MemoryLookup{Terms: []string{"wind"}, From: 0, Until: 20}, "one"},
		"another agent":  {goclaw.MemoryLookup{Agent: "other", Terms: []string{"wind"}}, ""},
		"other writing":  {goclaw.MemoryLookup{Terms: []string{"東京"}}, "odd"},
		"an emoji":       {goclaw.MemoryLookup{Terms: []string{"🎉"}}, "odd"},
		"signs":          {goclaw.MemoryLookup{Terms: []string{`"`, `'`, `boat" OR "sea`, `*`, "a' | b", `\`}}, ""},
	} {
		if tt.q.Agent == "" {
			tt.q.Agent = "main"
		}
		tt.q.Limit = 10
		found, err := x.Match(ctx, tt.q)
		got := strings.Fields(ids(found))
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, %v; want %s", name, got, err, tt.want)
		}
	}
	found, err := x.Match(ctx, goclaw.MemoryLookup{Agent: "main", Terms: []string{"boat", "sea"}, Limit: 1})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	want := chunk("one", "boat sea wind wind")
	want.Source, want.Path, want.At = goclaw.MemoryFiles, "a.md", 10
	if c := found[0]; c.ID != want.ID || c.Title != want.Title || c.Text != want.Text || c.Line != 3 || c.EndLine != 7 || c.Terms != want.Terms || c.TitleTerms != want.TitleTerms || c.Source != want.Source || c.Path != "a.md" || c.At != 10 {
		t.Errorf("%+v", c)
	}
	if _, length, _, err := x.Frequencies(ctx, nil); err != nil || length != 24 {
		t.Errorf("%d terms, %v", length, err)
	}
	words, err := x.Vocabulary(ctx)
	if slices.Sort(words); err != nil || !slices.Contains(words, "o0") || !slices.Contains(words, "odd") || !slices.Contains(words, "two") || !slices.Contains(words, "東京") || slices.Contains(words, "gone") {
		t.Errorf("%q, %v", words, err)
	}
}

func vectors(t *testing.T, open func(t *testing.T) (Index, func() Index)) {
	x, _ := open(t)
	ctx := t.Context()
	sensed := chunk("a1", "boat")
	sensed.Sense = []float32{1, 0, 0}
	must(t, x.Put(ctx, note("main", "a.md", 1), []goclaw.MemoryChunk{sensed, chunk("a2", "sea")}))
	must(t, x.Put(ctx, note("main", "copy.md", 1), []goclaw.MemoryChunk{chunk("a2", "sea")}))
	todo, err := x.Unembedded(ctx, "m", 0, 10)
	if err != nil || ids(todo) != "a1 a2" || todo[1].Text != "Text of a2" || todo[1].Title != "Title a2" {
		t.Fatalf("%+v, %v", todo, err)
	}
	if todo, err = x.Unembedded(ctx, "m", 0, 1); err != nil || len(todo) != 1 {
		t.Errorf("%+v, %v", todo, err)
	}
	must(t, x.PutVectors(ctx, "m", map[string][]float32{"a1": {0, 1}, "a2": {0.6, 0.8}, "gone": {1, 1}}))
	if todo, err = x.Unembedded(ctx, "m", 0, 10); err != nil || len(todo) != 0 {
		t.Errorf("%+v, %v", todo, err)
	}
	if todo, err = x.Unembedded(ctx, "m", 2, 10); err != nil || len(todo) != 0 {
		t.Errorf("%+v, %v", todo, err)
	}
	if todo, err = x.Unembedded(ctx, "m", 3, 10); err != nil || ids(todo) != "a1 a2" {
		t.Errorf("those of another length: %+v, %v", todo, err)
	}
	if s, err := x.Count(ctx, "main", "m"); err != nil || s.Embedded != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	near := func(model string, v ...float32) string {
		t.Helper()
		found, err := x.Nearest(ctx, goclaw.MemoryLookup{Agent: "main", Limit: 10}, model, v)
		must(t, err)
		var all []string
		for i, n := range found {
			all = append(all, n.ID+"@"+n.Path)
			if n.Likeness < -1.0001 || n.Likeness > 1.0001 || i > 0 && n.Likeness > found[i-1].Likeness {
				t.Errorf("%+v", found)
			}
		}
		return strings.Join(all, " ")
	}
	if got := near("m", 0, 1); got != "a1@a.md a2@a.md a2@copy.md" {
		t.Error(got)
	}
	if got := near("m", 1, 0); !strings.HasPrefix(got, "a2") || !strings.HasSuffix(got, "a1@a.md") {
		t.Error(got)
	}
	if got := near("m", 1, 0, 0) + near("none", 1, 0); got != "" {
		t.Errorf("vectors of another length or model: %s", got)
	}
	if got := near(goclaw.MemorySense, 1, 0, 0); got != "a1@a.md" {
		t.Errorf("the built-in ones: %s", got)
	}

	// A chunk that only moves keeps its vector; another model's replace them.
	must(t, x.Drop(ctx, "main", []string{"a.md"}))
	must(t, x.Put(ctx, note("main", "moved.md", 1), []goclaw.MemoryChunk{chunk("a1", "boat")}))
	if todo, err := x.Unembedded(ctx, "m", 0, 10); err != nil || len(todo) != 0 {
		t.Errorf("%+v, %v", todo, err)
	}
	must(t, x.PutVectors(ctx, "m2", map[string][]float32{"a1": {1, 0}}))
	if got := near("m", 0, 1); got != "" {
		t.Error(got)
	}
	if got := near(goclaw.MemorySense, 1, 0, 0); got != "a1@moved.md" {
		t.Error(got)
	}
}

// together: many write and read at a time, and none is lost.
func together(t *testing.T, open func(t *testing.T) (Index, func() Index)) {
	x, again := open(t)
	ctx := t.Context()
	y := again()
	defer func() { must(t, y.Close()) }()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			to := x
			if i%2 == 1 {
				to = y
			}
			for n := range 5 {
				path := string(rune('a'+i)) + string(rune('0'+n)) + ".md"
				if err := to.Put(ctx, note("main", path, 1), []goclaw.MemoryChunk{chunk(path, "boat")}); err != nil {
					t.Error(err)
				}
				if err := to.Put(ctx, note("main", "same.md", 1), []goclaw.MemoryChunk{chunk("same", "ship")}); err != nil {
					t.Error(err)
				}
				if _, err := to.Match(ctx, goclaw.MemoryLookup{Agent: "main", Terms: []string{"boat"}, Limit: 100}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, _, has, err := x.Frequencies(ctx, []string{"boat", "ship"}); err != nil || has["boat"] != 40 || has["ship"] != 1 {
		t.Errorf("%v, %v", has, err)
	}
}
