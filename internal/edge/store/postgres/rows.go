package postgres

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"goclaw"
)

// runColumns are the columns that runRow reads, in its order.
const runColumns = `runs.ordinal, runs.id, runs.session_key, runs.trigger, runs.requester_key, runs.parent, runs.depth,
	runs.root, runs.lane,
	runs.label, runs.task, runs.context, runs.profile, runs.cleanup, runs.announce, runs.state, runs.result, runs.error,
	runs.input_tokens, runs.output_tokens, runs.cache_read_tokens, runs.cache_write_tokens, runs.cost_usd,
	runs.created_at, coalesce(runs.started_at, 0), coalesce(runs.finished_at, 0), runs.epoch, runs.owner,
	coalesce(runs.deadline, 0), coalesce(runs.cancel_at, 0), runs.cancel_why, runs.idempotent,
	runs.waits_for, coalesce(runs.wake_at, 0), runs.recovery`

// runRow receives the columns of a run as they are stored. It is used for all
// rows of a query: neighbours mostly share profile and sessions, which are then
// parsed once. What was parsed is shared by the runs, and never changed.
type runRow struct {
	run                      goclaw.Run
	session, requester, lane string
	profile, recovery        []byte

	parsed   string // the profile that is in run
	sessions map[string]goclaw.SessionKey
}

func (r *runRow) dest() []any {
	u := &r.run.Usage
	return texts([]any{
		&r.run.Ordinal, &r.run.ID, &r.session, &r.run.Trigger, &r.requester, &r.run.Parent, &r.run.Depth,
		&r.run.Root, &r.lane,
		&r.run.Label, &r.run.Task, &r.run.Context, &r.profile, &r.run.Cleanup, &r.run.Announce, &r.run.State, &r.run.Result, &r.run.Error,
		&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD,
		&r.run.CreatedAt, &r.run.StartedAt, &r.run.FinishedAt, &r.run.Epoch, &r.run.Owner,
		&r.run.Deadline, &r.run.CancelAt, &r.run.CancelWhy, &r.run.Idempotent,
		&r.run.WaitsFor, &r.run.WakeAt, &r.recovery,
	})
}

// value parses what was read.
func (r *runRow) value() (_ goclaw.Run, err error) {
	if r.parsed != string(r.profile) {
		r.run.Profile = goclaw.Profile{}
		if err := json.Unmarshal(r.profile, &r.run.Profile); err != nil {
			return goclaw.Run{}, fmt.Errorf("profile of run %s: %w", r.run.ID, err)
		}
		r.parsed = string(r.profile)
	}
	if r.run.Recovery, err = recovery(r.recovery); err != nil {
		return goclaw.Run{}, fmt.Errorf("recovery of run %s: %w", r.run.ID, err)
	}
	if r.run.Session, err = r.key(r.session); err == nil {
		r.run.Requester, err = r.key(r.requester)
	}
	if err == nil {
		r.run.Lane, err = r.key(r.lane)
	}
	if err != nil {
		return goclaw.Run{}, fmt.Errorf("run %s: %w", r.run.ID, err)
	}
	return r.run, nil
}

func (r *runRow) key(text string) (goclaw.SessionKey, error) {
	if key, ok := r.sessions[text]; ok {
		return key, nil
	}
	var key goclaw.SessionKey
	if err := key.UnmarshalText([]byte(text)); err != nil {
		return key, err
	}
	if r.sessions == nil {
		r.sessions = map[string]goclaw.SessionKey{}
	}
	r.sessions[text] = key
	return key, nil
}

func recovery(text []byte) (*goclaw.Recovery, error) {
	if len(text) == 0 {
		return nil, nil
	}
	r := &goclaw.Recovery{}
	return r, json.Unmarshal(text, r)
}

// collectRuns reads the runs of q's answer.
func collectRuns(q *pgx.QueuedQuery, runs *[]goclaw.Run) {
	*runs = nil
	r := &runRow{}
	dest := r.dest()
	each(q, func(rows pgx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		run, err := r.value()
		*runs = append(*runs, run)
		return err
	})
}

const sessionColumns = `key, agent, created_at, updated_at, model, thinking, reset_at,
	coalesce(archived_at, 0), coalesce(deleted_at, 0), turns`

func collectSessions(q *pgx.QueuedQuery, sessions *[]goclaw.Session) {
	*sessions = nil
	each(q, func(rows pgx.Rows) error {
		var s goclaw.Session
		var key string
		err := scan(rows, &key, &s.Agent, &s.CreatedAt, &s.UpdatedAt, &s.Model, &s.Thinking, &s.ResetAt,
			&s.ArchivedAt, &s.DeletedAt, &s.Turns)
		if err != nil {
			return err
		}
		if err := s.Key.UnmarshalText([]byte(key)); err != nil {
			return err
		}
		*sessions = append(*sessions, s)
		return nil
	})
}

// change is an UPDATE of one row under way.
type change struct {
	set  []string
	args []any
}

func (c *change) to(column string, value any) {
	c.args = append(c.args, value)
	c.set = append(c.set, fmt.Sprintf("%s = $%d", column, len(c.args)+1))
}

// run queues the change of the run with that ordinal, if there is any.
func (c *change) run(t *tx, ordinal int64) {
	if len(c.set) > 0 {
		t.write(`UPDATE runs SET `+strings.Join(c.set, ", ")+` WHERE ordinal = $1`, append([]any{ordinal}, c.args...)...)
	}
}

// orNull is NULL for a moment that is not set.
func orNull(m goclaw.Millis) *goclaw.Millis {
	if m == 0 {
		return nil
	}
	return &m
}
