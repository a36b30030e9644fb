package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/budget"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/schema"
	"goclaw/internal/core/slices"
)

// Models finds the provider of a model.
type Models interface {
	// Provider returns the provider of provider/model and the model's name
	// without the prefix.
	Provider(model string) (goclaw.Provider, string, error)
}

// Files reads a workspace's files.
type Files interface {
	// Files returns the eight files of a workspace and what else is to be
	// shown, in that order; of those that are not to be shown only whether
	// they are there. What is wrong with one is in its Warning.
	Files(dir string, show []string) ([]goclaw.WorkspaceFile, error)
}

// SectionTexts gives the texts that replace built-in sections of prompts.
type SectionTexts interface {
	// Texts returns them by section id, and tells which of them are private
	// files of the workspace ("": that is not asked). An error fails the turn:
	// nothing may silently miss in a prompt.
	Texts(workspace string) (map[string]prompt.Replacement, error)
}

// Skills lists the skills that a session may know of.
type Skills interface {
	// List returns those that are eligible and that the profile allows, and
	// how its prompt lists them. warnings are for the person.
	List(p goclaw.Profile) (list prompt.SkillList, warnings []string, err error)
}

// Rewriter changes the sections of a prompt: the person's own command.
type Rewriter interface {
	// Rewrite returns the sections as they are to be. An error fails the turn.
	Rewrite(ctx context.Context, session goclaw.SessionKey, p goclaw.Profile, sections []goclaw.Section) ([]goclaw.Section, error)
}

// Notes keeps what an agent shall remember.
type Notes interface {
	// Remember adds text to the workspace's note of a day (2006-01-02), once
	// for each mark.
	Remember(workspace, day, mark, text string) error
}

// Mentions finds the files that a message names as @path.
type Mentions interface {
	// Mentioned returns what is to be added to the message: the files that
	// access may see, and a line for each that it may not. "" for nothing.
	Mentioned(ctx context.Context, workspace string, access goclaw.Access, text string) string
}

// WorkspaceTexts reads what slices name, and looks whether declared files are
// there.
type WorkspaceTexts interface {
	Read(ctx context.Context, workspace string, access goclaw.Access, wants []slices.Want) ([]slices.Found, error)
}

// Options are the engine's collaborators and limits.
type Options struct {
	Store  Store
	Models Models
	Files  Files
	Tools  []goclaw.Tool
	Rules  definition.Rules

	// What else prompts are made of; each may be nil.
	Sections SectionTexts
	Skills   Skills
	Rewriter Rewriter
	Notes    Notes
	Mentions Mentions
	Texts    WorkspaceTexts
	Facts    prompt.Facts
	// DailyNotes shows main sessions the notes of today and yesterday.
	DailyNotes bool

	Owner     string        // this process's id, unique for its life
	SoleOwner bool          // a lock proves that no other owner lives
	Lease     time.Duration // default 15 s, renewed at a third of it

	// Spawned runs at once: in the whole store, of one lane, of one agent. 0,
	// or no entry, is no bound.
	MaxWorkers  int
	MaxPerLane  int
	MaxPerAgent map[string]int

	MaxCalls     int // model calls per run; 0: no bound
	Announce     announce.Policy
	ArchiveAfter time.Duration // of kept workers' sessions; 0: never

	// Prices are known for some models. Rates are the allowances of providers,
	// by name, shared by all processes of the store.
	Prices func(model string) (budget.Price, bool)
	Rates  map[string]goclaw.RateRequest

	// Batch bounds the runs claimed at a time, so that processes share them; 0
	// is 64. TurnsAfter leaves fresh turns to the gateway that accepted them,
	// which shows them as they stream, for so long.
	Batch      int
	TurnsAfter time.Duration

	// Drain is how long steps under way may go on when the engine stops.
	Drain time.Duration
	// Changes tells what other processes did: the id of a run, or "" for
	// anything. It may be nil; a sweep each second finds the same, later.
	Changes <-chan string

	Publish func(goclaw.Notice) // live view; may be nil
	Hook    func(point string)  // named failpoints of crash tests; may be nil
	NewID   func() string       // ids of runs
	Zone    *time.Location      // the person's
	Log     *slog.Logger
}

// Engine runs runs. Its methods are safe for concurrent use.
type Engine struct {
	o       Options
	tools   map[string]goclaw.Tool
	schemas map[string]*schema.Schema
	wake    chan struct{}
	sure    atomic.Int64 // until when, in Unix milliseconds, the lease holds for certain
	orphans atomic.Bool  // runs may be ours that no job works on
	ended   atomic.Bool  // since the dispatcher last looked for announcements
	resumed atomic.Int64
	prompts prompts
	bell    bell           // rings when what calls wait for may have changed
	drain   chan struct{}  // closed when steps are not to be begun any more
	nudged  map[nudge]bool // inbox items that woke a waiting run; the dispatcher's own

	mu         sync.Mutex
	complaints map[string]time.Time // when what was last complained of
	inFlight   map[string]*job
	early      map[string]string // why claimed runs whose jobs are to start yet shall stop
	recovered  []string          // the runs taken over last
	jobs       sync.WaitGroup
}

// nudge is an inbox item that is ready for a session.
type nudge struct {
	item string
	to   goclaw.SessionKey
}

// The causes that end a run's work.
var (
	errShutdown = errors.New("goclaw is shutting down")
	errLost     = errors.New("the run's lease was lost")
	errTimeout  = errors.New("the run's time is up")
)

// cancelled is the cause when someone asked for the run's end.
type cancelled struct{ why string }

func (c cancelled) Error() string { return "cancelled: " + c.why }

// New makes an engine. It fails if a tool's schema can't be compiled or two
// tools share a name.
func New(o Options) (*Engine, error) {
	if o.Lease == 0 {
		o.Lease = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Publish == nil {
		o.Publish = func(goclaw.Notice) {}
	}
	if o.Hook == nil {
		o.Hook = func(string) {}
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Batch == 0 {
		o.Batch = 64
	}
	if o.Prices == nil {
		o.Prices = func(string) (budget.Price, bool) { return budget.Price{}, false }
	}
	e := &Engine{
		o: o, tools: map[string]goclaw.Tool{}, schemas: map[string]*schema.Schema{},
		wake: make(chan struct{}, 1), drain: make(chan struct{}),
		inFlight: map[string]*job{}, early: map[string]string{}, nudged: map[nudge]bool{}, complaints: map[string]time.Time{},
	}
	for _, t := range o.Tools {
		if err := e.AddTool(t); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// AddTool registers one more tool. It must not be called once Run has begun.
func (e *Engine) AddTool(t goclaw.Tool) error {
	spec := t.Spec()
	if _, dup := e.tools[spec.Name]; dup {
		return fmt.Errorf("two tools are named %q", spec.Name)
	}
	s, err := schema.Compile(spec.Schema)
	if err != nil {
		return fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	e.tools[spec.Name], e.schemas[spec.Name] = t, s
	return nil
}

// Accept takes a run in and returns once it is durable. A run without a root is
// the root of a tree of its own.
func (e *Engine) Accept(ctx context.Context, a goclaw.Acceptance) (goclaw.Run, bool, error) {
	e.prepare(&a)
	run, created, err := e.o.Store.Accept(ctx, a)
	if err != nil {
		return goclaw.Run{}, false, err
	}
	if created {
		e.Accepted(run)
	}
	return run, created, nil
}

// prepare gives a run that is to be accepted its id, its time and its place.
func (e *Engine) prepare(a *goclaw.Acceptance) {
	a.Run.ID = e.o.NewID()
	a.Run.State = goclaw.StateQueued
	a.Run.CreatedAt = goclaw.At(time.Now())
	if a.Run.Root == "" {
		a.Run.Root = a.Run.ID
	}
	if a.Run.Lane.IsZero() {
		a.Run.Lane = a.Run.Session
	}
	if limit := a.Run.Profile.Budget.Tree.Seconds; limit > 0 && a.Run.Profile.Until == 0 {
		a.Run.Profile.Until = a.Run.CreatedAt.Add(time.Duration(limit) * time.Second)
	}
}

// Accepted tells the live view and the dispatcher of a run that was accepted.
func (e *Engine) Accepted(r goclaw.Run) {
	e.publishRun(r)
	e.Wake()
}

// Wake makes the dispatcher look for work now.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Resumed is how many unfinished runs this process has taken over.
func (e *Engine) Resumed() int { return int(e.resumed.Load()) }

func (e *Engine) publishRun(r goclaw.Run) {
	e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r})
}
