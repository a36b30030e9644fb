package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/recall"
)

// refresh brings the index up to date: the agent's notes, and the turns of all
// agents.
func (m *Memory) refresh(ctx context.Context, agent string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	problems, err := m.refreshNotes(ctx, agent)
	if err != nil {
		return err
	}
	if err := m.refreshTurns(ctx); err != nil {
		return err
	}
	if err := m.forgetSessions(ctx, agent); err != nil {
		return err
	}
	m.problems[agent], m.updated[agent] = problems, goclaw.At(time.Now())
	return nil
}

// refreshNotes indexes the notes that have changed, and forgets those that are
// gone.
func (m *Memory) refreshNotes(ctx context.Context, agent string) (problems []string, err error) {
	workspace := m.o.Workspaces[agent]
	files, err := m.o.Files.Notes(workspace)
	if err != nil {
		return nil, fmt.Errorf("memory of agent %s: %w", agent, err)
	}
	docs, err := m.o.Index.Docs(ctx, agent, goclaw.MemoryFiles)
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for _, d := range docs {
		have[d.Path] = d.Version
	}
	stems := recall.NewStemmer()
	for _, f := range files {
		version, indexed := have[f.Path]
		if f.Problem == "" && indexed && version == f.Version && f.Version != "" {
			delete(have, f.Path)
			continue
		}
		text := ""
		if f.Problem == "" {
			if text, err = m.o.Files.Note(workspace, f.Path); err != nil {
				f.Problem = err.Error()
			}
		}
		if f.Problem != "" {
			problems = append(problems, f.Path+" "+f.Problem)
			continue // what it held before is forgotten below
		}
		delete(have, f.Path)
		d := goclaw.MemoryDoc{Agent: agent, Source: goclaw.MemoryFiles, Path: f.Path, Version: f.Version, At: m.written(f), Bytes: int64(len(text))}
		if err := m.o.Index.Put(ctx, d, chunks(stems, text, strings.TrimSuffix(path.Base(f.Path), ".md"))); err != nil {
			return nil, err
		}
	}
	var gone []string
	for p := range have {
		gone = append(gone, p)
	}
	return problems, m.o.Index.Drop(ctx, agent, gone)
}

// written is when a note was: that of a day on that day, any other when its
// file was changed.
func (m *Memory) written(f goclaw.MemoryFile) goclaw.Millis {
	name := path.Base(f.Path)
	if len(name) >= len(time.DateOnly) {
		if day, err := time.ParseInLocation(time.DateOnly, name[:len(time.DateOnly)], m.o.Zone); err == nil {
			return goclaw.At(day)
		}
	}
	return f.At
}

// chunks makes a text ready for an index. name is found by its words, too.
func chunks(stems recall.Stemmer, text, name string) []goclaw.MemoryChunk {
	var all []goclaw.MemoryChunk
	for _, c := range recall.Split(text) {
		text, title := stems.Terms(c.Text), stems.Terms(c.Title+" "+name)
		all = append(all, goclaw.MemoryChunk{
			ID: c.ID, Title: c.Title, Text: c.Text, Line: c.Line, EndLine: c.EndLine,
			Terms: strings.Join(text, " "), TitleTerms: strings.Join(title, " "),
			Sense: recall.Sense(append(title, text...)),
		})
	}
	return all
}

// turns are the triggers of runs that are a conversation.
func turns() []goclaw.Trigger {
	return []goclaw.Trigger{goclaw.TriggerUser, goclaw.TriggerAnnouncement, goclaw.TriggerCron, goclaw.TriggerHeartbeat}
}

// late is how many runs before the mark are looked at again: where several
// processes accept runs, one with a lower ordinal may become visible later.
const late = 32

// refreshTurns indexes the turns that have ended since the last time. The mark
// stays below every turn that may still be under way.
func (m *Memory) refreshTurns(ctx context.Context) error {
	mark, err := m.o.Index.Mark(ctx)
	if err != nil {
		return err
	}
	newest, err := m.o.Record.Runs(ctx, goclaw.RunFilter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}
	top := newest[0].Ordinal
	if mark > top { // another database than last time
		if err := m.forgetTurns(ctx); err != nil {
			return err
		}
		mark = 0
	}
	active, err := m.o.Record.Runs(ctx, goclaw.RunFilter{Active: true, Triggers: turns()})
	if err != nil {
		return err
	}
	ended, err := m.o.Record.Runs(ctx, goclaw.RunFilter{Ended: true, Triggers: turns(), After: max(0, mark-late)})
	if err != nil {
		return err
	}
	if err := m.addTurns(ctx, ended); err != nil {
		return err
	}
	next := top
	for _, r := range active {
		next = min(next, r.Ordinal-1)
	}
	if next <= mark {
		return nil
	}
	return m.o.Index.SetMark(ctx, next)
}

// addTurns indexes those of the turns that are not.
func (m *Memory) addTurns(ctx context.Context, ended []goclaw.Run) error {
	known := map[string]map[string]bool{} // by agent and path
	stems := recall.NewStemmer()
	for i := len(ended) - 1; i >= 0; i-- {
		r := ended[i]
		agent := r.Session.Agent
		if r.Session.IsWorker() {
			continue
		}
		if known[agent] == nil {
			docs, err := m.o.Index.Docs(ctx, agent, goclaw.MemoryTranscripts)
			if err != nil {
				return err
			}
			known[agent] = map[string]bool{}
			for _, d := range docs {
				known[agent][d.Path] = true
			}
		}
		place := recall.TurnPath(r)
		if known[agent][place] {
			continue
		}
		events, err := m.o.Record.Events(ctx, r.ID)
		if err != nil {
			return err
		}
		text := recall.TurnText(r, events)
		if text == "" {
			continue
		}
		d := goclaw.MemoryDoc{
			Agent: agent, Source: goclaw.MemoryTranscripts, Session: r.Session, Path: place,
			Version: r.ID, At: r.CreatedAt, Bytes: int64(len(text)),
		}
		if err := m.o.Index.Put(ctx, d, chunks(stems, text, "")); err != nil {
			return err
		}
	}
	return nil
}

// forgetTurns removes the turns of all agents.
func (m *Memory) forgetTurns(ctx context.Context) error {
	for agent := range m.o.Workspaces {
		if err := m.dropTurns(ctx, agent, func(goclaw.SessionKey) (bool, error) { return true, nil }); err != nil {
			return err
		}
	}
	return m.o.Index.SetMark(ctx, 0)
}

// forgetSessions removes the turns of sessions whose record is gone.
func (m *Memory) forgetSessions(ctx context.Context, agent string) error {
	gone := map[goclaw.SessionKey]bool{}
	return m.dropTurns(ctx, agent, func(key goclaw.SessionKey) (bool, error) {
		if known, asked := gone[key]; asked {
			return known, nil
		}
		s, err := m.o.Record.Session(ctx, key)
		if err != nil && !errors.Is(err, goclaw.ErrNotFound) {
			return false, err
		}
		gone[key] = err != nil || s.DeletedAt != 0
		return gone[key], nil
	})
}

func (m *Memory) dropTurns(ctx context.Context, agent string, gone func(goclaw.SessionKey) (bool, error)) error {
	docs, err := m.o.Index.Docs(ctx, agent, goclaw.MemoryTranscripts)
	if err != nil {
		return err
	}
	var paths []string
	for _, d := range docs {
		drop, err := gone(d.Session)
		if err != nil {
			return err
		}
		if drop {
			paths = append(paths, d.Path)
		}
	}
	return m.o.Index.Drop(ctx, agent, paths)
}

const embedBatch = 32

// Run embeds what is new whenever it is woken, until ctx ends. Without a model
// it only waits.
func (m *Memory) Run(ctx context.Context) {
	if m.o.Embedder == nil {
		<-ctx.Done()
		return
	}
	var again <-chan time.Time
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-again:
		}
		again = nil
		for agent := range m.o.Workspaces {
			if err := m.refresh(ctx, agent); err != nil && ctx.Err() == nil {
				m.o.Log.Warn("the index of memory could not be brought up to date", "agent", agent, "err", err)
			}
		}
		if m.embedAll(ctx) {
			wait = 0
			continue
		}
		// Only a model that failed is asked again by itself, less and less often.
		wait = min(15*time.Minute, max(30*time.Second, 2*wait))
		again = time.After(wait)
	}
}

// embedAll embeds what has no vector, and reports whether nothing is left.
func (m *Memory) embedAll(ctx context.Context) bool {
	if m.o.Embedder == nil {
		return true
	}
	err := m.embed(ctx)
	if err != nil && ctx.Err() == nil {
		m.complain(err)
		m.o.Log.Warn("memory is not embedded", "model", m.o.Embedder.Model(), "err", err)
	}
	return err == nil
}

func (m *Memory) embed(ctx context.Context) error {
	model, changed := m.o.Embedder.Model(), false
	for {
		if err := m.paused(ctx); err != nil {
			return err
		}
		batch, err := m.o.Index.Unembedded(ctx, model, m.length(), embedBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		texts := make([]string, len(batch))
		for i, c := range batch {
			texts[i] = strings.TrimSpace(c.Title + "\n" + c.Text)
		}
		vectors, err := m.o.Embedder.Embed(ctx, texts)
		if err != nil {
			return err
		}
		if before := m.answered(len(vectors[0])); before != 0 && before != len(vectors[0]) {
			if changed {
				return fmt.Errorf("it gives vectors of %d numbers, then of %d", before, len(vectors[0]))
			}
			changed = true // what it gave before is of no use any more, and is embedded anew
		}
		byID := map[string][]float32{}
		for i, v := range vectors {
			byID[batch[i].ID] = unit(v)
		}
		if err := m.o.Index.PutVectors(ctx, model, byID); err != nil {
			return err
		}
	}
}

// unit brings a vector to the length 1.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}

func (m *Memory) paused(ctx context.Context) error {
	p, err := m.o.Record.Paused(ctx)
	if err == nil && p.At != 0 {
		err = errors.New("model calls are paused (goclaw resume)")
	}
	return err
}

// complain keeps why the embedding model did not answer.
func (m *Memory) complain(err error) {
	m.state.Lock()
	defer m.state.Unlock()
	m.embedding = "embedding model " + m.o.Embedder.Model() + ": " + strings.Join(strings.Fields(err.Error()), " ") + "; full text alone is searched for what has no vector"
}

// answered notes that the embedding model did answer, with vectors of some
// length, and returns how long they were before; 0: it has not answered yet.
func (m *Memory) answered(length int) (before int) {
	m.state.Lock()
	defer m.state.Unlock()
	before = m.dims
	m.embedding, m.dims = "", length
	return before
}

// length is that of the embedding model's vectors; 0 while it is not known.
func (m *Memory) length() int {
	m.state.Lock()
	defer m.state.Unlock()
	return m.dims
}

func (m *Memory) complaint() string {
	m.state.Lock()
	defer m.state.Unlock()
	return m.embedding
}
