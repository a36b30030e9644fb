package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/recall"
)

const (
	defaultLimit = 8
	maxLimit     = 50
	candidates   = 200             // chunks that are ranked for a question's own terms, and for related ones
	embedWithin  = 4 * time.Second // a question's vector
)

// view is what an asker may be shown.
type view struct {
	access  goclaw.Access
	sources []goclaw.MemorySource
	session goclaw.SessionKey // whose turns alone; zero: all of the agent
}

// viewOf decides what of an agent's memory an asker may be shown. access.go has
// the rules: workers see notes only where a person named them, and turns never.
func viewOf(agent string, a goclaw.Access, sources []goclaw.MemorySource) (view, error) {
	v := view{access: a}
	want := func(s goclaw.MemorySource) bool { return len(sources) == 0 || slices.Contains(sources, s) }
	if want(goclaw.MemoryFiles) && seesNotes(a) {
		v.sources = append(v.sources, goclaw.MemoryFiles)
	}
	if want(goclaw.MemoryTranscripts) && !a.Session.IsWorker() {
		v.sources = append(v.sources, goclaw.MemoryTranscripts)
		if all, _ := a.MaySee(goclaw.Thing{Session: goclaw.MainKey(agent)}); !all {
			v.session = a.Session
		}
	}
	if len(v.sources) == 0 {
		return v, goclaw.BadRequest("memory is private to the main agent, outside this worker's reach; a person can lift it by name (subagents.inherit)")
	}
	return v, nil
}

func seesNotes(a goclaw.Access) bool {
	for _, entry := range append([]string{"MEMORY.md", "memory"}, a.Lifted()...) {
		if entry != "MEMORY.md" && entry != "memory" && !strings.HasPrefix(entry, "memory/") {
			continue
		}
		if ok, _ := a.MaySee(goclaw.Thing{Entry: entry}); ok {
			return true
		}
	}
	return false
}

// shows reports whether a chunk may be shown.
func (v view) shows(c goclaw.MemoryChunk) bool {
	if c.Source == goclaw.MemoryFiles {
		ok, _ := v.access.MaySee(goclaw.Thing{Entry: c.Path})
		return ok
	}
	key, _, ok := recall.ParseTurnPath(c.Path)
	if ok {
		ok, _ = v.access.MaySee(goclaw.Thing{Session: key})
	}
	return ok
}

// Search answers a question from an agent's memory.
func (m *Memory) Search(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error) {
	if err := m.known(q.Agent); err != nil {
		return goclaw.MemoryAnswer{}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return goclaw.MemoryAnswer{}, goclaw.BadRequest("the query is empty; ask something")
	}
	for _, s := range q.Sources {
		if s != goclaw.MemoryFiles && s != goclaw.MemoryTranscripts {
			return goclaw.MemoryAnswer{}, goclaw.BadRequest(fmt.Sprintf("source %q: want %s or %s", s, goclaw.MemoryFiles, goclaw.MemoryTranscripts))
		}
	}
	v, err := viewOf(q.Agent, q.Access, q.Sources)
	if err != nil {
		return goclaw.MemoryAnswer{}, err
	}
	answer, err := m.search(ctx, q, v)
	if errors.Is(err, goclaw.ErrMemoryDamaged) {
		if answer, err = m.search(ctx, q, v); err == nil {
			answer.Note = strings.TrimSpace("the index of memory was damaged and has been made anew. " + answer.Note)
		}
	}
	return answer, err
}

func (m *Memory) search(ctx context.Context, q goclaw.MemoryQuery, v view) (goclaw.MemoryAnswer, error) {
	if err := m.refresh(ctx, q.Agent); err != nil {
		return goclaw.MemoryAnswer{}, err
	}
	s := search{m: m, v: v, agent: q.Agent, now: q.Now, stems: recall.NewStemmer()}
	ranked, err := s.text(ctx, q.Text)
	if err != nil {
		return goclaw.MemoryAnswer{}, err
	}
	ranked, note, err := s.vectors(ctx, q.Text, ranked)
	if err != nil {
		return goclaw.MemoryAnswer{}, err
	}
	m.Wake()
	return goclaw.MemoryAnswer{Hits: s.hits(ranked, min(maxLimit, cmp.Or(max(0, q.Limit), defaultLimit))), Note: note}, nil
}

// search is one search under way.
type search struct {
	m     *Memory
	v     view
	agent string
	now   goclaw.Millis
	stems recall.Stemmer

	q     recall.Question
	stats recall.Stats
	seen  map[string]bool
	found []goclaw.MemoryChunk
}

// text ranks by full text: the question's own terms and related ones, then once
// more with what the best chunks share.
func (s *search) text(ctx context.Context, text string) ([]recall.Ranked, error) {
	w := s.m.weights
	var now time.Time
	if s.now != 0 {
		now = s.now.Time().In(s.m.o.Zone)
	}
	s.q = s.stems.Ask(text, now, w)
	s.seen = map[string]bool{}
	own, near := s.q.Wanted()
	if err := s.count(ctx, slices.Concat(own, near)); err != nil {
		return nil, err
	}
	if err := s.mend(ctx); err != nil {
		return nil, err
	}
	own, near = s.q.Wanted()
	for _, l := range []goclaw.MemoryLookup{{Terms: s.present(own)}, {Terms: s.present(near)}, {From: s.q.Span.From, Until: s.q.Span.Until}} {
		if err := s.gather(ctx, l); err != nil {
			return nil, err
		}
	}
	ranked := recall.Rank(s.q, s.found, s.stats, w, s.now)
	if w.Feedback == 0 || len(ranked) == 0 {
		return ranked, nil
	}
	if err := s.count(ctx, recall.FeedbackTerms(ranked)); err != nil {
		return nil, err
	}
	wider := recall.Feedback(s.q, ranked, s.stats, w)
	own, _ = wider.Wanted()
	if err := s.gather(ctx, goclaw.MemoryLookup{Terms: s.present(own[len(s.q.Concepts):])}); err != nil {
		return nil, err
	}
	return recall.Rank(wider, s.found, s.stats, w, s.now), nil
}

// count learns how frequent terms are.
func (s *search) count(ctx context.Context, terms []string) error {
	slices.Sort(terms)
	chunks, length, has, err := s.m.o.Index.Frequencies(ctx, slices.Compact(terms))
	if err != nil {
		return err
	}
	s.stats.Chunks, s.stats.Terms = chunks, length
	if s.stats.Has == nil {
		s.stats.Has = map[string]int{}
	}
	for t, n := range has {
		s.stats.Has[t] = n
	}
	return nil
}

// mend looks for what was meant by words that nothing holds, and for the longer
// and shorter words of those that English does not know.
func (s *search) mend(ctx context.Context) error {
	var meant, all []string
	for i, c := range s.q.Concepts {
		add := func(terms []string, weight float64) {
			for _, t := range terms {
				s.q.Concepts[i].Near = append(s.q.Concepts[i].Near, recall.Near{Term: t, Weight: weight})
			}
			meant = append(meant, terms...)
		}
		missing, joinable := s.stats.Has[c.Term] == 0 && recall.Mendable(c.Term), recall.Joinable(c.Term)
		if !missing && !joinable {
			continue
		}
		if all == nil {
			var err error
			if all, err = s.m.o.Index.Vocabulary(ctx); err != nil {
				return err
			}
		}
		if missing {
			add(recall.Alike(c.Term, all), s.m.weights.Spelling)
		}
		if joinable {
			add(recall.Joined(c.Term, all), s.m.weights.Joined)
		}
	}
	if len(meant) == 0 {
		return nil
	}
	return s.count(ctx, meant)
}

func (s *search) present(terms []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return s.stats.Has[t] == 0 })
}

// gather adds to the chunks that are ranked. A lookup of nothing finds nothing.
func (s *search) gather(ctx context.Context, l goclaw.MemoryLookup) error {
	if len(l.Terms) == 0 && l.Until == 0 {
		return nil
	}
	chunks, err := s.m.o.Index.Match(ctx, s.lookup(l))
	if err != nil {
		return err
	}
	for _, c := range chunks {
		key := fmt.Sprintf("%s\x00%d\x00%s", c.Path, c.Line, c.ID)
		if !s.seen[key] && s.v.shows(c) {
			s.seen[key] = true
			s.found = append(s.found, c)
		}
	}
	return nil
}

func (s *search) lookup(l goclaw.MemoryLookup) goclaw.MemoryLookup {
	l.Agent, l.Sources, l.Session, l.Limit = s.agent, s.v.sources, s.v.session, candidates
	return l
}

// vectors fuses a ranking with those by likeness of meaning: by the built-in
// vectors always, by an embedding model if there is one that answers.
func (s *search) vectors(ctx context.Context, text string, ranked []recall.Ranked) (_ []recall.Ranked, note string, err error) {
	w := s.m.weights
	// Where the question's own words are found, likeness has less to say.
	held := recall.Held(s.q, ranked, s.stats)
	less := 1 - held*held
	lists := []recall.List{{Ranked: ranked, Weight: 1}}
	builtIn := w.Sense
	if e := s.m.o.Embedder; e != nil {
		v, err := s.m.vectorOf(ctx, text)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case err != nil:
			s.m.complain(err)
			note = fmt.Sprintf("searched without embedding model %s: %s", e.Model(), strings.Join(strings.Fields(err.Error()), " "))
		default:
			alike, err := s.nearest(ctx, e.Model(), v, 0)
			if err != nil {
				return nil, "", err
			}
			if len(alike) > 0 {
				lists, builtIn = append(lists, recall.List{Ranked: alike, Weight: w.Embedding * less}), min(w.Sense, w.Beside)
			}
		}
	}
	if v := recall.Sense(s.q.Terms); v != nil && builtIn > 0 {
		alike, err := s.nearest(ctx, goclaw.MemorySense, v, w.SenseLeast)
		if err != nil {
			return nil, "", err
		}
		lists = append(lists, recall.List{Ranked: alike, Weight: builtIn * less})
	}
	return recall.Fuse(s.q, w, lists...), note, nil
}

// nearest ranks by likeness to a vector, and leaves out what is less like it
// than least.
func (s *search) nearest(ctx context.Context, model string, v []float32, least float64) ([]recall.Ranked, error) {
	near, err := s.m.o.Index.Nearest(ctx, s.lookup(goclaw.MemoryLookup{}), model, v)
	var alike []recall.Ranked
	for _, n := range near {
		if n.Likeness > least && s.v.shows(n.MemoryChunk) {
			alike = append(alike, recall.Ranked{MemoryChunk: n.MemoryChunk, Score: n.Likeness})
		}
	}
	return alike, err
}

// vectorOf embeds a question. It waits for the model, but not for long.
func (m *Memory) vectorOf(ctx context.Context, text string) ([]float32, error) {
	if err := m.paused(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, embedWithin, fmt.Errorf("no answer within %s", embedWithin))
	defer cancel()
	vs, err := m.o.Embedder.Embed(ctx, []string{text})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	m.answered(len(vs[0]))
	return unit(vs[0]), nil
}

// hits words the best chunks; equal ones only once.
func (s *search) hits(ranked []recall.Ranked, limit int) []goclaw.MemoryHit {
	hits := []goclaw.MemoryHit{}
	told := map[string]bool{}
	for _, r := range ranked {
		if told[r.ID] {
			continue
		}
		told[r.ID] = true
		snippet, first, last := s.stems.Snippet(s.q, r.Text)
		if r.Title != "" {
			snippet = r.Title + "\n" + snippet
		}
		hits = append(hits, goclaw.MemoryHit{
			Source: r.Source, Path: r.Path, Line: r.Line + first, EndLine: r.Line + last,
			Score: float64(int(r.Score*1000+0.5)) / 1000, Snippet: snippet, At: r.At,
		})
		if len(hits) == limit {
			break
		}
	}
	return hits
}

const (
	defaultLines = 100
	maxExcerpt   = 30_000 // bytes
)

// Excerpt reads lines of a note or of a recorded turn, by the path that a
// search gave. from counts from 1; lines 0 is a hundred.
func (m *Memory) Excerpt(ctx context.Context, agent string, a goclaw.Access, place string, from, lines int) (goclaw.MemoryExcerpt, error) {
	if err := m.known(agent); err != nil {
		return goclaw.MemoryExcerpt{}, err
	}
	text, err := m.whole(ctx, agent, a, place)
	if err != nil {
		return goclaw.MemoryExcerpt{}, err
	}
	all := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	from = max(1, from)
	if from > len(all) {
		return goclaw.MemoryExcerpt{}, goclaw.BadRequest(fmt.Sprintf("%s has only %d lines", place, len(all)))
	}
	end := min(len(all), from-1+cmp.Or(max(0, lines), defaultLines))
	part := strings.Join(all[from-1:end], "\n")
	if len(part) > maxExcerpt {
		part = strings.ToValidUTF8(part[:maxExcerpt], "") + "\n[cut; read on with fewer lines]"
	}
	return goclaw.MemoryExcerpt{Path: place, Line: from, Lines: end - from + 1, Of: len(all), Text: part}, nil
}

func (m *Memory) whole(ctx context.Context, agent string, a goclaw.Access, place string) (string, error) {
	if strings.HasPrefix(place, recall.TurnPrefix) {
		key, id, ok := recall.ParseTurnPath(place)
		if !ok {
			return "", goclaw.BadRequest(fmt.Sprintf("%q is no path that a search gave", place))
		}
		v, err := viewOf(agent, a, []goclaw.MemorySource{goclaw.MemoryTranscripts})
		if err != nil {
			return "", err
		}
		if !v.shows(goclaw.MemoryChunk{Source: goclaw.MemoryTranscripts, Path: place}) {
			return "", goclaw.BadRequest(place + " is another conversation, outside this session's reach")
		}
		r, err := m.o.Record.Run(ctx, id)
		if err != nil {
			return "", err
		}
		if r.Session != key || key.IsWorker() {
			return "", fmt.Errorf("turn %s: %w", place, goclaw.ErrNotFound)
		}
		events, err := m.o.Record.Events(ctx, r.ID)
		return recall.TurnText(r, events), err
	}
	if place != path.Clean(place) || place != "MEMORY.md" && !strings.HasPrefix(place, "memory/") {
		return "", goclaw.BadRequest(fmt.Sprintf("%q is no note: want MEMORY.md, memory/… or a path that a search gave", place))
	}
	v, err := viewOf(agent, a, []goclaw.MemorySource{goclaw.MemoryFiles})
	if err != nil {
		return "", err
	}
	if !v.shows(goclaw.MemoryChunk{Source: goclaw.MemoryFiles, Path: place}) {
		return "", goclaw.BadRequest(place + " is private to the main agent, outside this worker's reach")
	}
	text, err := m.o.Files.Note(m.o.Workspaces[agent], place)
	if err != nil {
		return "", goclaw.BadRequest(fmt.Sprintf("%s %v", place, err))
	}
	return text, nil
}
