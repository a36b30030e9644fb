package web

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// Conversations takes messages in and tells what becomes of them.
type Conversations interface {
	// Receive returns once the message is durable. The run that it becomes
	// outlives ctx.
	Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error)

	// Subscribe returns the notices that match, until ctx ends; the channel
	// is closed then. It never blocks whoever publishes: a slow reader loses
	// notices and gets a goclaw.NoticeLag. match may be called by several
	// goroutines.
	Subscribe(ctx context.Context, match func(goclaw.Notice) bool) <-chan goclaw.Notice

	// Await blocks until the run has ended; with workers, until everything
	// that it started and the turns that announce it have ended too. It
	// returns soon after ctx ends, with an error.
	Await(ctx context.Context, runID string, workers bool) (goclaw.Outcome, error)
}

// Runs answers questions about runs and ends them.
type Runs interface {
	// Runs lists runs, newest first.
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	// RunLog and Cancel take a run's id or an unambiguous prefix of it, and
	// return goclaw.ErrNotFound if there is no such run.
	RunLog(ctx context.Context, id string) (goclaw.RunLog, error)
	Cancel(ctx context.Context, id, why string) ([]goclaw.Run, error)
}

// Follower tells what happens to one run.
type Follower interface {
	// Follow tells the events of a run after the one numbered after (-1: all),
	// in order and each once, as goclaw.NoticeEvent, other notices of it
	// between them, and last a goclaw.NoticeRun with the ended run. The channel
	// is closed then, soon after ctx ends, or if the record can't be read. A
	// slow reader holds nobody up.
	Follow(ctx context.Context, id string, after int) (<-chan goclaw.Notice, error)
}

// Queue tells when runs have their turn, and when they are over.
type Queue interface {
	// Positions tells the places in the queue, from 1, of those of the runs
	// that are in it.
	Positions(ctx context.Context, runs []goclaw.Run) (map[string]int, error)
	// WaitRun blocks until a run, named by its id or a prefix, has ended. It
	// returns soon after ctx ends, with an error.
	WaitRun(ctx context.Context, id string) (goclaw.Run, error)
}

// Workers starts workers and reaches those under way. The same once ("" is
// none) is taken once.
type Workers interface {
	RunFlow(ctx context.Context, session goclaw.SessionKey, file, text string, input json.RawMessage, once string) (goclaw.SpawnReply, error)
	Spawn(ctx context.Context, session goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error)
	// Steer returns goclaw.ErrEnded if the run can read nothing any more.
	Steer(ctx context.Context, id, text, once string) (goclaw.Run, error)
	Resume(ctx context.Context, id string) (goclaw.Run, error)
}

// Artifacts are what runs left. A run is named by its id or an unambiguous
// prefix of it.
type Artifacts interface {
	// Artifacts lists them, newest first.
	Artifacts(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error)
	// Artifact returns one with its content.
	Artifact(ctx context.Context, run, name string) (goclaw.Artifact, []byte, error)
}

// Parking lists the deliveries that wait for a person, and decides about them.
type Parking interface {
	Parked(ctx context.Context) ([]goclaw.Parked, error)
	RetryParked(ctx context.Context, id string) (goclaw.Parked, error)
	DismissParked(ctx context.Context, id string) (goclaw.Parked, error)
}

// Spending tells what was spent, and stops it.
type Spending interface {
	Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error)
	Paused(ctx context.Context) (goclaw.Pause, error)
	SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error)
}

// Sessions answers questions about conversations.
type Sessions interface {
	Sessions(ctx context.Context) ([]goclaw.Session, error)
	// ResetSession makes a conversation begin anew: what came before is kept,
	// but not shown to the model.
	ResetSession(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error)
	// History returns a session's runs with their events, oldest first.
	History(ctx context.Context, key goclaw.SessionKey) ([]goclaw.RunLog, error)
}

// Inspector shows what the gateway would do and how it is.
type Inspector interface {
	Context(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error)
	// AsSent rebuilds the request of a run's model call, from 1. With step 0
	// the name may be all that ContextDiff takes.
	AsSent(ctx context.Context, name string, step int) (goclaw.Sent, error)
	// ContextDiff compares two requests, each named by a session's key or a run
	// (the last one), or by RUN#STEP.
	ContextDiff(ctx context.Context, a, b string) (goclaw.SentDiff, error)
	Status(ctx context.Context) (goclaw.Status, error)
}

// Backend is all that the surface stands on. Its methods are safe for
// concurrent use; an error that wraps goclaw.ErrNotFound becomes a 404,
// goclaw.ErrEnded a 409, a goclaw.BadRequest a 400, any other a 500 with its
// text, which only the holder of the token gets to see.
type Backend interface {
	Conversations
	Callers
	Runs
	Follower
	Queue
	Workers
	Artifacts
	Parking
	Spending
	Sessions
	Definitions
	Inspector
	Memory
}

// Options say what to serve. Backend and Crontab are required.
type Options struct {
	// Token is what clients must bring. With "" nobody gets in.
	Token   string
	Backend Backend
	Crontab Crontab
	Logger  *slog.Logger // nil: slog.Default
	Version string       // sent as X-GoClaw-Version to those who have the token

	// Ready says why the gateway can't work yet; nil means that it can.
	Ready func() error
	Now   func() time.Time // nil: time.Now

	// Hosts are the names and addresses, with or without a port, under which
	// the gateway may be called besides loopback ones. An unspecified address
	// (0.0.0.0 or ::) allows every literal address, but no name.
	Hosts []string

	Limits Limits

	// Redact takes secrets out of the text of errors; nil leaves it as it is.
	Redact func(string) string

	// Metrics counts requests and answers GET /metrics; nil: there are none.
	Metrics Metrics

	// NewToken makes another token and stores it, for whoever asks that the
	// present one end. Nil: it can't be changed.
	NewToken func(context.Context) (string, error)

	// Page is the web page, for those who are signed in; SignedOut says to the
	// others how to be, and why a link that they followed (its path is /login)
	// did not sign them in. Both get every path that no route answers. Nil: no
	// page.
	Page      http.Handler
	SignedOut http.Handler

	// Agents are the ids that /v1 offers as models, the default one first;
	// none means only main.
	Agents []string
}

// server holds what the handlers share; nothing of it changes but the keys.
type server struct {
	Options
	mux     *http.ServeMux
	started time.Time
	keys    atomic.Pointer[keys]
	guesses guesses

	rotating sync.Mutex // one change of the token at a time
	flights  flights

	byToken, byCookie *rate.Limiter
}

// route is one pattern of the surface. An open one needs no token. The
// description is what the document says, and what requests are held against.
type route struct {
	pattern string
	open    bool
	handle  http.HandlerFunc
	op      openapi.Operation
}

// New returns the surface as one handler.
func New(o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Agents) == 0 {
		o.Agents = []string{"main"}
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	o.Limits.PerSecond = cmp.Or(o.Limits.PerSecond, defaultPerSecond)
	o.Limits.AtOnce = cmp.Or(o.Limits.AtOnce, defaultAtOnce)
	s := &server{
		Options: o, mux: http.NewServeMux(), started: o.Now(),
		guesses: guesses{by: map[netip.Prefix]guess{}},
		flights: flights{most: o.Limits.AtOnce, all: map[int]context.CancelCauseFunc{}},
		byToken: newLimiter(o.Limits.PerSecond), byCookie: newLimiter(o.Limits.PerSecond),
	}
	s.keys.Store(newKeys(o.Token))
	open := map[string]bool{}
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.pattern, s.checked(r))
		open[r.pattern] = r.open
	}
	return s.recovered(s.guarded(open))
}

// routes are all that the surface answers. Each is described beside its
// handler.
func (s *server) routes() []route {
	return slices.Concat(
		s.healthRoutes(), s.metricsRoutes(), s.documentRoutes(), s.loginRoutes(), s.v1Routes(),
		s.messageRoutes(), s.sessionRoutes(), s.eventRoutes(),
		s.runRoutes(), s.workerRoutes(), s.artifactRoutes(), s.parkedRoutes(),
		s.definitionRoutes(), s.contextRoutes(),
		s.cronRoutes(), s.memoryRoutes(), s.spendRoutes(),
	)
}
