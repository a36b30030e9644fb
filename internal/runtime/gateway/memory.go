package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw"
)

// Memory is what agents remember.
type Memory interface {
	Search(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error)
	Status(ctx context.Context, agent string) (goclaw.MemoryStatus, error)
	Reindex(ctx context.Context) ([]goclaw.MemoryStatus, error)
}

var errNoMemory = errors.New("this gateway was made without a memory")

// SearchMemory looks something up in an agent's memory.
func (g *Gateway) SearchMemory(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error) {
	if g.o.Memory == nil {
		return goclaw.MemoryAnswer{}, errNoMemory
	}
	return g.o.Memory.Search(ctx, q)
}

// MemoryStatus describes the index of an agent's memory.
func (g *Gateway) MemoryStatus(ctx context.Context, agent string) (goclaw.MemoryStatus, error) {
	if g.o.Memory == nil {
		return goclaw.MemoryStatus{}, errNoMemory
	}
	return g.o.Memory.Status(ctx, agent)
}

// ReindexMemory makes the index anew, of all agents.
func (g *Gateway) ReindexMemory(ctx context.Context) ([]goclaw.MemoryStatus, error) {
	if g.o.Memory == nil {
		return nil, errNoMemory
	}
	return g.o.Memory.Reindex(ctx)
}

// MemoryText shows what was found, the best first.
func MemoryText(a goclaw.MemoryAnswer) string {
	var b strings.Builder
	if a.Note != "" {
		fmt.Fprintf(&b, "[%s]\n", oneLine(a.Note))
	}
	if len(a.Hits) == 0 {
		return b.String() + "Nothing found."
	}
	for i, h := range a.Hits {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s:%d-%d  %.2f", oneLine(h.Path), h.Line, h.EndLine, h.Score)
		if h.At != 0 {
			fmt.Fprintf(&b, "  %s", clock(h.At)[:len("2006-01-02")])
		}
		b.WriteString("\n")
		for line := range strings.Lines(h.Snippet) {
			fmt.Fprintf(&b, "    %s\n", oneLine(line))
		}
	}
	return b.String()
}

// MemoryStatusText describes an index.
func MemoryStatusText(s goclaw.MemoryStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent %s: %s, %s, %s of %d bytes", s.Agent, count(s.Files, "note", "notes"), count(s.Turns, "turn", "turns"), count(s.Chunks, "chunk", "chunks"), s.Bytes)
	if s.UpdatedAt != 0 {
		fmt.Fprintf(&b, ", looked at %s", clock(s.UpdatedAt))
	}
	if s.Embedding != "" {
		fmt.Fprintf(&b, "\nembedding: %s, %d of %s have a vector, compared by %s", s.Embedding, s.Embedded, count(s.Chunks, "chunk", "chunks"), s.Vectors)
	} else {
		b.WriteString("\nembedding: none (memory.embedding names a model); searched by full text")
	}
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "\nnot searched: %s", oneLine(p))
	}
	return b.String()
}
