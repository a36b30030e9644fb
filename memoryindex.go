package goclaw

import "errors"

// ErrMemoryDamaged says that the index of memory was damaged and is thrown away:
// who asks again finds one that is made anew.
var ErrMemoryDamaged = errors.New("it was damaged and is made anew")

// MemoryDoc is a file or a recorded turn in an index of memory.
type MemoryDoc struct {
	Agent   string
	Source  MemorySource
	Session SessionKey // of a turn
	Path    string     // as in MemoryHit
	Version string     // changes when the document does
	At      Millis     // when it was written
	Bytes   int64
}

// MemoryChunk is a piece of a document: what a search finds.
type MemoryChunk struct {
	ID      string // by title and text: equal pieces share it, and their vector
	Source  MemorySource
	Path    string
	At      Millis
	Title   string // the headings above it
	Text    string
	Line    int
	EndLine int

	// Terms and TitleTerms are the words of text and title as they are compared,
	// with blanks between them.
	Terms      string
	TitleTerms string

	// Sense is the chunk's vector by the built-in model, kept with it; nil for
	// none.
	Sense []float32
}

// MemorySense is the name of the built-in model of vectors.
const MemorySense = "built-in"

// MemoryLookup asks an index for chunks.
type MemoryLookup struct {
	Agent   string
	Sources []MemorySource // none: all
	Session SessionKey     // whose recorded turns alone are wanted; zero: all sessions'
	Terms   []string       // any of these
	From    Millis         // written in this time; both 0: at any
	Until   Millis
	Limit   int
}

// MemoryNear is a chunk with its likeness to a vector, from -1 to 1.
type MemoryNear struct {
	MemoryChunk
	Likeness float64
}

// MemoryFile is a note as it lies in a workspace.
type MemoryFile struct {
	Path    string // relative to the workspace
	Version string // changes when the file does; "" if that can't be told
	At      Millis
	Bytes   int64
	Problem string // why it can't be read, "" if it can
}
