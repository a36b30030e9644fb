package goclaw

import "errors"

// Errors of the crontab that callers branch on. Stores wrap them.
var (
	// ErrChanged: the job was changed or fired by another since it was read.
	// Nothing was written.
	ErrChanged = errors.New("the job has changed meanwhile")
	// ErrBusy: what the firing must not overlap with is under way. Nothing was
	// written.
	ErrBusy = errors.New("what it must not overlap with is under way")
)

// ScheduleKind says how a schedule is written.
type ScheduleKind string

// The kinds of schedule.
const (
	ScheduleAt    ScheduleKind = "at"    // once
	ScheduleEvery ScheduleKind = "every" // in equal steps from Anchor on
	ScheduleCron  ScheduleKind = "cron"  // by an expression, in a time zone
)

// Schedule says when a job is due. Exactly the fields of Kind are set.
type Schedule struct {
	Kind    ScheduleKind `json:"kind"`
	At      Millis       `json:"at,omitempty"`
	EveryMs int64        `json:"everyMs,omitempty"`
	Anchor  Millis       `json:"anchor,omitempty"`   // of every: a due time that the others are counted from
	Expr    string       `json:"expr,omitempty"`     // five fields, six with seconds first, or @daily and its like
	Zone    string       `json:"timezone,omitempty"` // IANA name; "": the person's
}

// CronTarget says what a firing is.
type CronTarget string

// The targets of a job.
const (
	TargetMain     CronTarget = "main"     // a turn of Session
	TargetIsolated CronTarget = "isolated" // a run of its own, with no history; Session is told its result
)

// MissedPolicy says what becomes of due times at which nothing could run.
type MissedPolicy string

// The policies for missed due times.
const (
	MissedOnce MissedPolicy = "once" // they are made up for by one firing
	MissedSkip MissedPolicy = "skip"
)

// CronJob is something that an agent does by the clock (spec section 9).
type CronJob struct {
	ID       string     `json:"id"` // lower-case letters, digits and -; the last part of its session's key
	Name     string     `json:"name"`
	Agent    string     `json:"agentId"`
	Schedule Schedule   `json:"schedule"`
	Target   CronTarget `json:"target"`

	// Session is whose turn a firing is, or who is told the result of an
	// isolated run; zero for an isolated job: nobody is, it is only on record.
	Session SessionKey `json:"session"`

	// Message is the task of an isolated run, or the text of the event in Session.
	Message string `json:"message"`

	// How the run is made; zero values leave it to the agent's configuration.
	Model          string       `json:"model,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	TimeoutSeconds *int         `json:"timeoutSeconds,omitempty"` // isolated
	Definition     string       `json:"agent,omitempty"`          // isolated
	Budget         Limits       `json:"budget,omitzero"`          // of each firing; it can only narrow the agent's
	Missed         MissedPolicy `json:"missed"`

	// Heartbeat marks the job that the configuration gives an agent.
	Heartbeat bool `json:"heartbeat,omitempty"`

	Enabled   bool   `json:"enabled"`
	Next      Millis `json:"nextAt,omitempty"` // the next due time; 0: none
	CreatedAt Millis `json:"createdAt"`
	UpdatedAt Millis `json:"updatedAt"`

	// Request is what added the job, if that was said to happen once: the hashes
	// of its key and of what it said.
	Request string `json:"request,omitempty"`

	// Revision counts the changes and firings; a write must know the last.
	Revision int64 `json:"revision"`
}

// Key is the session of the job's isolated runs.
func (j CronJob) Key() SessionKey { return CronKey(j.Agent, j.ID) }

// Firing is one due time of a job and what came of it.
type Firing struct {
	Job     string `json:"job"`
	Due     Millis `json:"due"` // of a manual firing: when it was asked
	At      Millis `json:"at"`  // when it was decided
	Manual  bool   `json:"manual,omitempty"`
	Skipped string `json:"skipped,omitempty"` // why nothing ran
	Missed  int    `json:"missed,omitempty"`  // further due times that it makes up for

	// Run is what it started; the rest is that run's, as it is now.
	Run        string   `json:"runId,omitempty"`
	State      RunState `json:"status,omitempty"`
	Result     string   `json:"result,omitempty"`
	Error      string   `json:"error,omitempty"`
	StartedAt  Millis   `json:"startedAt,omitempty"`
	FinishedAt Millis   `json:"finishedAt,omitempty"`
	Usage      Usage    `json:"usage"`
}

// CronFire decides about one due time of a job in one transaction: the record
// of the firing, the run's acceptance, and the job's next due time.
type CronFire struct {
	Job    CronJob // as it was read: its revision must still be the last, else ErrChanged
	Firing Firing  // Job, Due, At, Manual, Skipped and Missed; the store sets Run

	// Run is what to accept; nil if the firing is skipped.
	Run *Acceptance

	// IfQuiet makes the firing fail with ErrBusy while the run's session has an
	// unended run, Alone while one that this job fired has not ended, and
	// MaxActive (0: no bound) while so many runs with the trigger cron have not.
	IfQuiet   bool
	Alone     bool
	MaxActive int

	// Next and Enabled are the job's from now on. A manual firing leaves both
	// as they are.
	Next    Millis
	Enabled bool
}

// CronReport is a job with what became of its last firing.
type CronReport struct {
	CronJob
	Last     *Firing `json:"last,omitempty"`     // the newest that ran or was skipped
	Running  string  `json:"running,omitempty"`  // the unended run, if any
	Failures int     `json:"failures,omitempty"` // in a row, up to now

	// LastError is what the last of the failures was; while the job rests after
	// it, Last says only that.
	LastError string  `json:"lastError,omitempty"`
	Upcoming  []int64 `json:"upcoming,omitempty"` // the next due times, in Unix milliseconds
}

// CronEdit is what a person or an agent says of a job; what is nil stays as it
// is. The schedule is given in one of two ways: whole, or as people write it.
type CronEdit struct {
	Name           *string       `json:"name,omitempty" jsonschema:"what people call it"`
	Agent          *string       `json:"agentId,omitempty" jsonschema:"whose job it is; only when it is added"`
	Schedule       *Schedule     `json:"schedule,omitempty" jsonschema:"when it is due; or say it by at, every or cron"`
	At             *string       `json:"at,omitempty" jsonschema:"once: RFC 3339, a local time such as 2026-03-01 09:00, or 20m from now"`
	Every          *string       `json:"every,omitempty" jsonschema:"in equal steps, such as 30m, 2h or 1d"`
	Cron           *string       `json:"cron,omitempty" jsonschema:"a cron expression of five fields, or six with seconds first"`
	Timezone       *string       `json:"timezone,omitempty" jsonschema:"of cron and of a local time, such as Europe/Berlin; default: the person's"`
	Target         *CronTarget   `json:"target,omitempty" jsonschema:"main: a turn of session; isolated (default): a run of its own"`
	Session        *SessionKey   `json:"session,omitempty" jsonschema:"whose turn it is, or who is told an isolated run's result; empty: nobody"`
	Message        *string       `json:"message,omitempty" jsonschema:"what the agent is to do"`
	Model          *string       `json:"model,omitempty" jsonschema:"provider/model or an alias; empty: the agent's"`
	Thinking       *string       `json:"thinking,omitempty" jsonschema:"off, low, medium or high; empty: the agent's"`
	TimeoutSeconds *int          `json:"timeoutSeconds,omitempty" jsonschema:"of an isolated run; 0: none"`
	Definition     *string       `json:"agent,omitempty" jsonschema:"the definition of an isolated run; empty: none"`
	Budget         *Limits       `json:"budget,omitempty" jsonschema:"what one firing may spend"`
	Missed         *MissedPolicy `json:"missed,omitempty" jsonschema:"what becomes of due times at which nothing could run"`
	Enabled        *bool         `json:"enabled,omitempty" jsonschema:"false: it does not fire by the clock"`
}
