package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/core/recall"
)

// Index is where chunks are found.
type Index interface {
	Docs(ctx context.Context, agent string, source goclaw.MemorySource) ([]goclaw.MemoryDoc, error)
	// Put replaces a document and its chunks in one transaction.
	Put(ctx context.Context, d goclaw.MemoryDoc, chunks []goclaw.MemoryChunk) error
	Drop(ctx context.Context, agent string, paths []string) error
	// Clear removes everything but vectors.
	Clear(ctx context.Context) error
	// Mark is the ordinal up to which turns are indexed.
	Mark(ctx context.Context) (int64, error)
	SetMark(ctx context.Context, ordinal int64) error

	Match(ctx context.Context, q goclaw.MemoryLookup) ([]goclaw.MemoryChunk, error)
	// Frequencies counts chunks, their terms, and the chunks that hold each of
	// these terms.
	Frequencies(ctx context.Context, terms []string) (chunks, length int, has map[string]int, err error)
	// Vocabulary lists the terms of all chunks.
	Vocabulary(ctx context.Context) ([]string, error)
	Count(ctx context.Context, agent, model string) (goclaw.MemoryStatus, error)

	Vectors
	Close() error
}

// Vectors are those of chunks.
type Vectors interface {
	// Vectors says who compares them.
	Vectors() string
	// Unembedded lists chunks without a vector of a model that has this length;
	// length 0: of any.
	Unembedded(ctx context.Context, model string, length, limit int) ([]goclaw.MemoryChunk, error)
	// PutVectors keeps vectors by the ids of their chunks.
	PutVectors(ctx context.Context, model string, vectors map[string][]float32) error
	Nearest(ctx context.Context, q goclaw.MemoryLookup, model string, v []float32) ([]goclaw.MemoryNear, error)
}

// Files are the notes of workspaces.
type Files interface {
	// Notes lists MEMORY.md and what is below memory/. What is wrong with one is
	// in its Problem.
	Notes(workspace string) ([]goclaw.MemoryFile, error)
	// Note reads one of them.
	Note(workspace, path string) (string, error)
}

// Record holds the recorded turns.
type Record interface {
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
	Session(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error)
	Paused(ctx context.Context) (goclaw.Pause, error)
}

// Embedder makes vectors of texts.
type Embedder interface {
	Model() string
	// Embed returns a vector for each text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options are what a Memory stands on.
type Options struct {
	Index      Index
	Files      Files
	Record     Record
	Embedder   Embedder          // nil: full text alone
	Workspaces map[string]string // of the agents, by id
	Zone       *time.Location    // the person's; nil: the machine's
	Weights    recall.Weights    // zero: the default ones
	Log        *slog.Logger
}

// Memory is the memory of all agents. It is safe for concurrent use.
type Memory struct {
	o       Options
	weights recall.Weights
	wake    chan struct{}

	mu       sync.Mutex // held while the index is brought up to date
	problems map[string][]string
	updated  map[string]goclaw.Millis

	state     sync.Mutex
	embedding string // why the embedding model did not answer last, "" if it did
	dims      int    // of its vectors, 0 while that is not known
}

// New returns a Memory; nothing is opened before it is used.
func New(o Options) *Memory {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Weights == (recall.Weights{}) {
		o.Weights = recall.DefaultWeights()
	}
	return &Memory{
		o: o, weights: o.Weights, wake: make(chan struct{}, 1),
		problems: map[string][]string{}, updated: map[string]goclaw.Millis{},
	}
}

// Close releases the index. Run must have ended.
func (m *Memory) Close() error { return m.o.Index.Close() }

// Wake tells that there may be something new to embed.
func (m *Memory) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Status describes an agent's index, after it was brought up to date.
func (m *Memory) Status(ctx context.Context, agent string) (goclaw.MemoryStatus, error) {
	if err := m.known(agent); err != nil {
		return goclaw.MemoryStatus{}, err
	}
	s, err := m.count(ctx, agent)
	if errors.Is(err, goclaw.ErrMemoryDamaged) {
		s, err = m.count(ctx, agent)
	}
	return s, err
}

func (m *Memory) count(ctx context.Context, agent string) (goclaw.MemoryStatus, error) {
	if err := m.refresh(ctx, agent); err != nil {
		return goclaw.MemoryStatus{}, err
	}
	model := ""
	if m.o.Embedder != nil {
		model = m.o.Embedder.Model()
	}
	s, err := m.o.Index.Count(ctx, agent, model)
	if err != nil {
		return s, err
	}
	m.mu.Lock()
	s.UpdatedAt, s.Problems = m.updated[agent], slices.Clone(m.problems[agent])
	m.mu.Unlock()
	if model != "" {
		s.Embedding, s.Vectors = model, m.o.Index.Vectors()
		if why := m.complaint(); why != "" {
			s.Problems = append(s.Problems, why)
		}
	}
	return s, nil
}

// Reindex throws the index away and makes it anew, and embeds what has no
// vector yet.
func (m *Memory) Reindex(ctx context.Context) ([]goclaw.MemoryStatus, error) {
	err := m.clear(ctx)
	if errors.Is(err, goclaw.ErrMemoryDamaged) {
		err = m.clear(ctx)
	}
	if err != nil {
		return nil, err
	}
	agents := slices.Sorted(maps.Keys(m.o.Workspaces))
	for _, agent := range agents {
		if err := m.refresh(ctx, agent); err != nil {
			return nil, err
		}
	}
	m.embedAll(ctx)
	all := make([]goclaw.MemoryStatus, len(agents))
	for i, agent := range agents {
		if all[i], err = m.Status(ctx, agent); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (m *Memory) clear(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.o.Index.Clear(ctx)
}

func (m *Memory) known(agent string) error {
	if _, ok := m.o.Workspaces[agent]; !ok {
		return goclaw.BadRequest(fmt.Sprintf("there is no agent %q; there are: %v", agent, slices.Sorted(maps.Keys(m.o.Workspaces))))
	}
	return nil
}
