package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"goclaw"
)

// Recall looks things up.
type Recall interface {
	Search(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error)
	// Excerpt reads lines of a note or a recorded turn.
	Excerpt(ctx context.Context, agent string, a goclaw.Access, path string, from, lines int) (goclaw.MemoryExcerpt, error)
}

// Notes keeps what is to be remembered.
type Notes interface {
	// Remember adds text to the note of a day, once for each mark.
	Remember(workspace, day, mark, text string) error
}

// The schemas and descriptions are sent with every model call.
const (
	searchSchema = `{"type":"object","required":["query"],"properties":{"query":{"type":"string"},"maxResults":{"type":"integer"},"sources":{"type":"array","items":{"enum":["files","transcripts"]}}}}`
	getSchema    = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"from":{"type":"integer"},"lines":{"type":"integer"}}}`
	writeSchema  = `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`

	maxText = 20_000 // bytes of one note
)

// Names are the names of the three tools.
func Names() []string { return []string{"memory_get", "memory_search", "memory_write"} }

// ReadNames are those that change nothing.
func ReadNames() []string { return []string{"memory_get", "memory_search"} }

// Tools returns the three tools. Days are those of zone.
func Tools(r Recall, n Notes, zone *time.Location) []goclaw.Tool {
	d := deps{r, n, zone}
	spec := func(name, description, schema string) goclaw.ToolSpec {
		return goclaw.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema), Idempotent: true}
	}
	write := spec("memory_write", "Add to today's note.", writeSchema)
	write.Ordered = true // notes stand in the order in which they were made
	return []goclaw.Tool{
		tool{spec("memory_search", "Search notes and past conversations: a question or keywords.", searchSchema), d.search},
		tool{spec("memory_get", "Read lines of a path from memory_search.", getSchema), d.get},
		tool{write, d.write},
	}
}

type deps struct {
	recall Recall
	notes  Notes
	zone   *time.Location
}

type tool struct {
	spec goclaw.ToolSpec
	call func(context.Context, goclaw.Invocation) (any, error)
}

func (t tool) Spec() goclaw.ToolSpec { return t.spec }

func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	v, err := t.call(ctx, in)
	isError := false
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return goclaw.ToolError(context.Cause(ctx).Error())
	case goclaw.IsBadRequest(err), errors.Is(err, goclaw.ErrNotFound):
		v, isError = goclaw.Failed(err.Error()), true
	default: // the index is derived: a turn goes on without it
		return goclaw.ToolError("memory can't be searched now: " + err.Error())
	}
	b, err := json.Marshal(v)
	if err != nil {
		return goclaw.ToolError(err.Error())
	}
	return goclaw.ToolResult{Content: string(b), IsError: isError}
}

// hit is what a model is told of one that was found.
type hit struct {
	Path    string  `json:"path"`
	Lines   string  `json:"lines"`
	Score   float64 `json:"score"`
	Day     string  `json:"day,omitempty"`
	Snippet string  `json:"snippet"`
}

func (d deps) search(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q struct {
		Query      string
		MaxResults int
		Sources    []goclaw.MemorySource
	}
	if err := arguments(in, &q); err != nil {
		return nil, err
	}
	found, err := d.recall.Search(ctx, goclaw.MemoryQuery{
		Agent: in.Session.Agent, Text: q.Query, Limit: q.MaxResults, Sources: q.Sources,
		Now: goclaw.At(time.Now()), Access: in.Profile.Access(in.Session, in.Fence.Run),
	})
	if err != nil {
		return nil, err
	}
	hits := make([]hit, len(found.Hits))
	for i, h := range found.Hits {
		hits[i] = hit{Path: h.Path, Lines: fmt.Sprintf("%d-%d", h.Line, h.EndLine), Score: h.Score, Snippet: h.Snippet}
		if h.At != 0 {
			hits[i].Day = h.At.Time().In(d.zone).Format(time.DateOnly)
		}
	}
	answer := map[string]any{"hits": hits}
	if found.Note != "" {
		answer["note"] = found.Note
	}
	return answer, nil
}

func (d deps) get(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q struct {
		Path        string
		From, Lines int
	}
	if err := arguments(in, &q); err != nil {
		return nil, err
	}
	return d.recall.Excerpt(ctx, in.Session.Agent, in.Profile.Access(in.Session, in.Fence.Run), q.Path, q.From, q.Lines)
}

func (d deps) write(_ context.Context, in goclaw.Invocation) (any, error) {
	var q struct{ Text string }
	if err := arguments(in, &q); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(q.Text)
	switch {
	case in.Session.IsWorker():
		return nil, goclaw.BadRequest("only the main agent writes to its memory; leave what you found in your answer")
	case text == "":
		return nil, goclaw.BadRequest("text is empty; say what is to be remembered")
	case len(text) > maxText:
		return nil, goclaw.BadRequest(fmt.Sprintf("text has %d bytes, a note at most %d; keep what lasts, and write the rest into a file", len(text), maxText))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, goclaw.BadRequest("text holds bytes that are no text")
	}
	// The time of the intent, not of this try: a call that runs again after
	// midnight finds its mark in the same note.
	at := in.Since.Time()
	if in.Since == 0 {
		at = time.Now()
	}
	day := at.In(d.zone).Format(time.DateOnly)
	sum := sha256.Sum256([]byte(in.Fence.Run + "\x00" + in.Call.ID))
	if err := d.notes.Remember(in.Profile.Workspace, day, "memory "+hex.EncodeToString(sum[:6]), text); err != nil {
		return nil, goclaw.BadRequest(err.Error())
	}
	return map[string]string{"path": "memory/" + day + ".md"}, nil
}

func arguments(in goclaw.Invocation, into any) error {
	if err := json.Unmarshal([]byte(in.Call.Arguments), into); err != nil {
		return goclaw.BadRequest("arguments: " + err.Error())
	}
	return nil
}
