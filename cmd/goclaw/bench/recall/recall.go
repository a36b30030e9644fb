package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/recall"
	"goclaw/internal/edge/recall/sqlite"
	"goclaw/internal/edge/workspace"
	memory "goclaw/internal/runtime/recall"
)

// Options say what to measure with.
type Options struct {
	Embedder memory.Embedder // nil: full text alone

	weights recall.Weights // zero: the default ones
	tuning  bool           // the questions for tuning alone
}

// Report is what was measured.
type Report struct {
	Chunks    int    `json:"chunks"`
	Embedding string `json:"embedding,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Sets      []Set  `json:"sets"`
}

// Set is what was measured on some of the questions.
type Set struct {
	Name      string   `json:"name"`
	Questions int      `json:"questions"`
	Results   []Result `json:"results"`

	asked []question
}

// sets are the questions that are asked.
func sets(tuningOnly bool) ([]Set, error) {
	tuning, held, fresh := questions()
	if tuningOnly {
		return []Set{{Name: "for tuning", asked: tuning}}, nil
	}
	own, err := ownWords()
	return []Set{
		{Name: "in other words than the notes', the half that nothing was tuned on", asked: held},
		{Name: "in other words, measured when all was tuned", asked: fresh},
		{Name: "four words of the notes", asked: own},
	}, err
}

// Result is how well one way of searching found the answers.
type Result struct {
	Name string  `json:"name"`
	At1  float64 `json:"recallAt1"` // the share of questions whose answer came first
	At5  float64 `json:"recallAt5"` // … was among the first five
	MRR  float64 `json:"mrr"`       // mean of 1/rank, 0 beyond the fiftieth
	Ms   float64 `json:"ms"`        // of one search, on average
}

// finder returns the headings of what it finds, the best first.
type finder func(ctx context.Context, question string) ([]string, error)

// Run measures.
func Run(ctx context.Context, o Options) (r Report, err error) {
	dir, err := os.MkdirTemp("", "goclaw-bench-memory-*")
	if err != nil {
		return r, fmt.Errorf("bench memory: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := layOut(dir); err != nil {
		return r, fmt.Errorf("bench memory: %w", err)
	}
	if r.Sets, err = sets(o.tuning); err != nil {
		return r, fmt.Errorf("bench memory: %w", err)
	}
	plain, err := newPlain(ctx, dir)
	if err != nil {
		return r, fmt.Errorf("bench memory: %w", err)
	}
	defer plain.close()
	ways := []struct {
		name string
		find finder
	}{
		{"FTS5, all words", plain.find("plain", " ")},
		{"FTS5, any word, bm25", plain.find("plain", " OR ")},
		{"FTS5, any word, bm25, porter stems", plain.find("stemmed", " OR ")},
	}
	ours := newOurs(dir, o.weights, nil)
	defer func() { err = errors.Join(err, ours.Close()) }()
	status, err := ours.Status(ctx, agent)
	if err != nil {
		return r, fmt.Errorf("bench memory: %w", err)
	}
	r.Chunks = status.Chunks
	ways = append(ways, struct {
		name string
		find finder
	}{"GoClaw, full text", finding(ours)})
	if o.Embedder != nil {
		fused := newOurs(dir, o.weights, o.Embedder)
		defer func() { err = errors.Join(err, fused.Close()) }()
		all, err := fused.Reindex(ctx)
		if err != nil {
			return r, fmt.Errorf("bench memory: %w", err)
		}
		r.Embedding = o.Embedder.Model()
		if len(all) == 1 && len(all[0].Problems) > 0 {
			r.Problem = strings.Join(all[0].Problems, "; ")
		}
		ways = append(ways, struct {
			name string
			find finder
		}{"GoClaw, full text and vectors", finding(fused)})
	}
	for i := range r.Sets {
		set := &r.Sets[i]
		set.Questions = len(set.asked)
		for _, w := range ways {
			result, err := measure(ctx, w.name, w.find, set.asked)
			if err != nil {
				return r, fmt.Errorf("bench memory: %s: %w", w.name, err)
			}
			set.Results = append(set.Results, result)
		}
	}
	return r, nil
}

const agent = "main"

func newOurs(dir string, w recall.Weights, e memory.Embedder) *memory.Memory {
	return memory.New(memory.Options{
		Index: sqlite.New(filepath.Join(dir, "memory.db"), nil), Files: workspace.Memories{}, Record: noRecord{},
		Embedder: e, Workspaces: map[string]string{agent: dir}, Zone: time.UTC, Weights: w,
	})
}

// finding searches as the agent does.
func finding(m *memory.Memory) finder {
	return func(ctx context.Context, q string) ([]string, error) {
		found, err := m.Search(ctx, goclaw.MemoryQuery{
			Agent: agent, Text: q, Limit: most, Now: goclaw.At(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)), Access: goclaw.Access{Session: goclaw.MainKey(agent)},
		})
		if err != nil {
			return nil, err
		}
		var headings []string
		for _, h := range found.Hits {
			title, _, _ := strings.Cut(h.Snippet, "\n")
			headings = append(headings, headingOf(title))
		}
		return headings, nil
	}
}

// most is how many chunks are looked at.
const most = 50

func measure(ctx context.Context, name string, find finder, asked []question) (Result, error) {
	r := Result{Name: name}
	began := time.Now()
	for _, q := range asked {
		headings, err := find(ctx, q.text)
		if err != nil {
			return r, err
		}
		switch rank := rankOf(q.heading, headings); {
		case rank == 0:
		case rank == 1:
			r.At1++
			fallthrough
		case rank <= 5:
			r.At5++
			fallthrough
		default:
			r.MRR += 1 / float64(rank)
		}
	}
	n := float64(len(asked))
	r.Ms = math.Round(10*float64(time.Since(began).Microseconds())/1000/n) / 10
	for _, share := range []*float64{&r.At1, &r.At5, &r.MRR} {
		*share = math.Round(1000**share/n) / 1000
	}
	return r, nil
}

// rankOf is the place of a section among those that were found, from 1; 0 if it
// was not. A section that stands there twice counts once.
func rankOf(heading string, found []string) int {
	seen := map[string]bool{}
	for _, h := range found {
		seen[h] = true
		if h == heading {
			return len(seen)
		}
	}
	return 0
}

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goclaw bench memory: %d chunks of notes\n", r.Chunks)
	for _, set := range r.Sets {
		fmt.Fprintf(&b, "\n%d questions, %s:\n", set.Questions, set.Name)
		fmt.Fprintf(&b, "%-36s %9s %9s %6s %8s\n", "", "recall@1", "recall@5", "MRR", "search")
		for _, x := range set.Results {
			fmt.Fprintf(&b, "%-36s %8.1f%% %8.1f%% %6.3f %5.1f ms\n", x.Name, 100*x.At1, 100*x.At5, x.MRR, x.Ms)
		}
	}
	if r.Embedding == "" {
		b.WriteString("\nNo embedding model is configured (memory.embedding): full text alone.\n")
	} else {
		fmt.Fprintf(&b, "\nEmbedding model: %s.\n", r.Embedding)
	}
	if r.Problem != "" {
		fmt.Fprintf(&b, "%s\n", r.Problem)
	}
	return b.String()
}

// noRecord is a record without a turn.
type noRecord struct{}

func (noRecord) Run(context.Context, string) (goclaw.Run, error) {
	return goclaw.Run{}, goclaw.ErrNotFound
}
func (noRecord) Runs(context.Context, goclaw.RunFilter) ([]goclaw.Run, error) { return nil, nil }
func (noRecord) Events(context.Context, string) ([]goclaw.Event, error)       { return nil, nil }
func (noRecord) Session(context.Context, goclaw.SessionKey) (goclaw.Session, error) {
	return goclaw.Session{}, goclaw.ErrNotFound
}
func (noRecord) Paused(context.Context) (goclaw.Pause, error) { return goclaw.Pause{}, nil }
