package definition

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"goclaw"
	"goclaw/internal/core/frontmatter"
)

// Status is what became of a definition's file.
type Status = goclaw.DefinitionStatus

// Level says how bad a problem is.
type Level = goclaw.ProblemLevel

// Problem is what is wrong with a file, where, and how to mend it.
type Problem = goclaw.DefinitionProblem

// The statuses and levels, by their short names.
const (
	StatusOK       = goclaw.DefinitionOK
	StatusWarning  = goclaw.DefinitionWarning
	StatusDegraded = goclaw.DefinitionDegraded
	StatusRejected = goclaw.DefinitionRejected

	LevelNotice  = goclaw.LevelNotice
	LevelWarning = goclaw.LevelWarning
	LevelDegrade = goclaw.LevelDegrade
	LevelError   = goclaw.LevelError
)

// Definition is a worker that a markdown file describes. The zero values of
// its settings mean that the file says nothing about them.
type Definition struct {
	Path      string // as it was given to Parse
	Scope     string
	Trusted   bool   // false: it is listed, and a spawn is refused
	Overrides string // the path of the file whose name it takes, set by a Catalog

	Name        string // as written; of a rejected file perhaps only the file's name
	Description string
	Body        string // byte for byte
	SHA256      string // of Body, in hexadecimal

	Status   Status
	Problems []Problem // in the file's order

	Tools Tools

	Model          string // id, alias, role or inherit
	ModelRole      string // main, fast, compaction, fallback or embedding
	Thinking       string // off, low, medium or high
	Effort         string // low, medium or high
	MaxTurns       int    // model calls
	TimeoutSeconds *int   // 0: none
	Visibility     string // user-facing or internal
	Mode           string // primary, subagent or all, as OpenCode has it
	Temperature    *float64
	Skills         []string
	MCPServers     []string
	EmitFindings   bool

	Typed Typed
}

// Typed is what stands under the key goclaw.
type Typed struct {
	Version    int
	PromptMode goclaw.PromptMode // "" for minimal
	Inherit    []string          // workspace files, the most; nil: the default, empty: none
	Input      json.RawMessage   // a JSON Schema; nil: anything
	Context    []Slice
	Output     *Output
	Artifacts  []Artifact
	Limits     Limits
	Next       []Next // the workers that follow, in order
}

// Slice is a piece of context that is put into the first message. Exactly one
// of File, Glob, From and Artifact is set.
type Slice struct {
	File, Glob, From, Artifact string

	Tag       string // "" lets the assembler name it
	Optional  bool
	MaxTokens int    // 0: no bound
	Overflow  string // error, cut or outline
	Line, Col int    // where it stands
}

// Output is the form of the answer.
type Output struct {
	Format  string          // xml or json
	Tag     string          // root of xml
	Schema  json.RawMessage `json:",omitempty"` // of json; nil: any
	Stop    []string
	Retries int
}

// Artifact must exist when the worker says that it is done.
type Artifact struct {
	Path string
	Min  int
}

// Limits are those that only definitions have. A zero field bounds nothing;
// ResultTokens nil is the configured bound.
type Limits struct {
	ContextPercent int
	ContextTokens  int
	OnLimit        string // handoff or fail; "" for handoff
	MaxHandoffs    *int
	ResultTokens   *int
}

// Blocked says for a person why this definition can't be spawned, "" if it can.
// Trust is not looked at.
func (d Definition) Blocked() string {
	if d.Status != StatusDegraded && d.Status != StatusRejected {
		return ""
	}
	level := LevelError
	if d.Status == StatusDegraded {
		level = LevelDegrade
	}
	var why []string
	for _, p := range d.Problems {
		if p.Level == level {
			why = append(why, p.Render(d.Path))
		}
	}
	return strings.Join(why, "\n")
}

// AllowedTools is the list of tools that the file asks for, in our names; nil
// is the worker set. What it denies is not in it.
func (d Definition) AllowedTools() []string { return d.Tools.Allow }

// DeniedTools are the tools that the file denies, in our names where there are
// some.
func (d Definition) DeniedTools() []string { return d.Tools.Deny }

// Policy is the file's part in the resolution of a worker's tools.
func (d Definition) Policy() Policy { return Policy{Allow: d.Tools.Allow, Deny: d.Tools.Deny} }

// PromptMode is the mode of its system prompt.
func (d Definition) PromptMode() goclaw.PromptMode {
	return cmp.Or(d.Typed.PromptMode, goclaw.PromptMinimal)
}

// Slug is the name in lower case with hyphens, "" if nothing of it is left.
func (d Definition) Slug() string { return slug(d.Name) }

// Answers reports whether a spawn that asks for name means this definition: by
// its name, case aside, or by its slug.
func (d Definition) Answers(name string) bool {
	name = strings.TrimSpace(name)
	return strings.EqualFold(name, d.Name) || name != "" && strings.EqualFold(name, d.Slug())
}

func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// add records a problem and lowers the status if it weighs that much.
func (d *Definition) add(level Level, line, col int, message, hint string) {
	d.Problems = append(d.Problems, Problem{Line: line, Col: col, Level: level, Message: message, Hint: hint})
}

func (d *Definition) at(level Level, v frontmatter.Value, message, hint string) {
	d.add(level, v.Line, v.Col, message, hint)
}

// settle derives the status from the problems and puts them in order.
func (d *Definition) settle() {
	slices.SortStableFunc(d.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	d.Status = StatusOK
	has := func(l Level) bool {
		return slices.ContainsFunc(d.Problems, func(p Problem) bool { return p.Level == l })
	}
	switch {
	case has(LevelError):
		d.Status = StatusRejected
	case has(LevelDegrade):
		d.Status = StatusDegraded
	case has(LevelWarning):
		d.Status = StatusWarning
	}
}

// ResolvedTools is what AllowedTools and DeniedTools come down to for a worker
// that its requester and the configuration narrow no further, sorted.
func (d Definition) ResolvedTools() []string {
	allow := d.Tools.Allow
	if allow == nil {
		allow = workerSet[:]
	}
	return filter(allow, Policy{Deny: d.Tools.Deny})
}

// Unreadable is the definition that stands for a file that could not be read.
func Unreadable(file, why, hint string) Definition {
	d := Definition{Path: file, Name: stem(file)}
	d.add(LevelError, 1, 1, why, hint)
	d.settle()
	return d
}
