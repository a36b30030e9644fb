package goclaw

// MemoryQuery asks an agent's memory. Only sessions that may see private
// context ask it (Access decides).
type MemoryQuery struct {
	Agent   string
	Text    string // a question in everyday words, or keywords
	Limit   int    // 0: 8
	Sources []MemorySource

	// Now is what "yesterday" and recency are counted from; 0 leaves both out.
	Now Millis

	// Access is who asks: what it may not see is not found.
	Access Access
}

// MemoryAnswer is what was found, the best first.
type MemoryAnswer struct {
	Hits []MemoryHit `json:"hits"`
	Note string      `json:"note,omitempty"` // what was not as it should be, such as an embedding model that did not answer
}

// MemoryExcerpt is a part of a note or of a recorded turn.
type MemoryExcerpt struct {
	Path  string `json:"path"`
	Line  int    `json:"line"` // the first, from 1
	Lines int    `json:"lines"`
	Of    int    `json:"of"` // lines of the whole
	Text  string `json:"text"`
}

// MemorySource says where a piece of memory comes from.
type MemorySource string

// The sources of memory. An empty list in a query means all.
const (
	MemoryFiles       MemorySource = "files"       // MEMORY.md and memory/*.md
	MemoryTranscripts MemorySource = "transcripts" // the agent's main, channel and API sessions
)

// MemoryHit is one piece of memory that answers a query.
type MemoryHit struct {
	Source  MemorySource `json:"source"`
	Path    string       `json:"path"` // relative to the workspace; of a transcript: session:KEY#run
	Line    int          `json:"line"` // the first, from 1
	EndLine int          `json:"endLine"`
	Score   float64      `json:"score"` // from 0 to 1, comparable within one answer only
	Snippet string       `json:"snippet"`
	At      Millis       `json:"at,omitempty"` // when it was written, if that is known
}

// MemoryStatus describes an agent's index.
type MemoryStatus struct {
	Agent     string   `json:"agentId"`
	Files     int      `json:"files"`
	Turns     int      `json:"turns"` // of transcripts
	Chunks    int      `json:"chunks"`
	Bytes     int64    `json:"bytes"` // of indexed text
	UpdatedAt Millis   `json:"updatedAt"`
	Embedding string   `json:"embedding,omitempty"` // the model, "" if none is configured
	Embedded  int      `json:"embedded,omitempty"`  // chunks that have a vector
	Vectors   string   `json:"vectors,omitempty"`   // who compares them
	Problems  []string `json:"problems,omitempty"`  // what could not be indexed, and why
}
