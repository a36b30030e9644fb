package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// Each query finds what must not be there.
var doubles = map[string]string{
	"a run id twice":                          `SELECT id FROM runs GROUP BY id HAVING count(*) > 1`,
	"a request accepted twice":                `SELECT idempotent FROM runs WHERE idempotent <> '' GROUP BY idempotent HAVING count(*) > 1`,
	"an event's number twice":                 `SELECT run_id FROM events GROUP BY run_id, seq HAVING count(*) > 1`,
	"a run with two ends":                     `SELECT run_id FROM events WHERE kind = 'end' GROUP BY run_id HAVING count(*) > 1`,
	"an ended run without an end":             `SELECT id FROM runs WHERE finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events WHERE run_id = id AND kind = 'end')`,
	"a run that has not ended":                `SELECT id || ' ' || state FROM runs WHERE finished_at IS NULL`,
	"a result announced twice":                `SELECT source FROM inbox WHERE kind = 'announcement' GROUP BY source HAVING count(*) > 1`,
	"an item's id twice":                      `SELECT id FROM inbox GROUP BY id HAVING count(*) > 1`,
	"an item that nobody took":                `SELECT id FROM inbox WHERE consumed_at IS NULL AND parked_at IS NULL`,
	"a parked result":                         `SELECT id FROM inbox WHERE kind = 'announcement' AND parked_at IS NOT NULL`,
	"a reply twice":                           `SELECT run_id FROM outbox GROUP BY run_id HAVING count(*) > 1`,
	"a reply that is neither kept nor parked": `SELECT id || ' ' || state FROM outbox WHERE state NOT IN ('pending', 'parked')`,
	"a turn without its reply":                `SELECT id FROM runs WHERE trigger <> 'spawn' AND result <> '' AND NOT EXISTS (SELECT 1 FROM outbox WHERE run_id = runs.id)`,
	"a model call booked twice":               `SELECT run_id FROM calls GROUP BY run_id, seq HAVING count(*) > 1`,
}

// ledger is what the database holds when all processes have stopped.
type ledger struct {
	*site
	runs     []goclaw.Run // oldest first
	events   map[string][]goclaw.Event
	lines    map[string]int // of the file of effects
	requests []providertest.Recorded
	sum      figures
}

// check holds a round's end against the promises.
func (s *site) check(sum *tally) {
	if s.t.Failed() {
		return
	}
	l := &ledger{site: s, events: map[string][]goclaw.Event{}, lines: map[string]int{}, requests: s.model.Requests()}
	if err := l.load(s.t.Context()); err != nil {
		s.t.Errorf("the database can't be read: %v", err)
		return
	}
	for what, query := range doubles {
		found, err := s.records.look(query)
		if err != nil || len(found) > 0 {
			s.t.Errorf("%s: %v %v", what, found, err)
		}
	}
	if err := s.records.sound(); err != nil {
		s.t.Errorf("the database is damaged: %v", err)
	}
	l.checkSessions()
	for _, c := range s.chats {
		l.checkChat(c)
	}
	l.checkCalls()
	l.checkFaults()
	l.checkLogs()
	sum.add(l.sum)
}

func (l *ledger) load(ctx context.Context) (err error) {
	db, err := l.records.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if l.runs, err = db.Runs(ctx, goclaw.RunFilter{}); err != nil {
		return err
	}
	slices.Reverse(l.runs)
	for _, r := range l.runs {
		if l.events[r.ID], err = db.Events(ctx, r.ID); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(filepath.Join(l.workspace, effectsFile))
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(b)) {
		l.lines[line]++
	}
	return nil
}

// checkSessions: a session's runs are one after the other. The end of one is
// stamped before it is recorded, and the next can't begin before that.
func (l *ledger) checkSessions() {
	last := map[goclaw.SessionKey]goclaw.Millis{}
	for _, r := range l.runs {
		l.sum.runs++
		events := l.events[r.ID]
		if len(events) == 0 {
			continue
		}
		if events[0].At < last[r.Session] {
			l.t.Errorf("%s began while another run of %s was under way", r.ID, r.Session)
		}
		last[r.Session] = events[len(events)-1].At
		for i, e := range events {
			if e.Seq != i {
				l.t.Errorf("%s: event %d has the number %d", r.ID, i, e.Seq)
			}
			if e.Resumed != nil {
				l.sum.takeovers++
			}
		}
	}
}

// checkChat: the message was accepted once, its workers have ended as they
// should, once each, and all is told.
func (l *ledger) checkChat(c *chat) {
	l.sum.chats++
	tree := map[string]bool{}
	of := map[string]goclaw.Run{}
	for _, r := range l.runs {
		if r.Session == c.key && r.Trigger == goclaw.TriggerUser && r.ID != c.run {
			l.t.Errorf("%s: %s was accepted, and %s too", c.name, c.run, r.ID)
		}
		if r.Trigger != goclaw.TriggerSpawn && r.Session == c.key {
			tree[r.ID] = true
			if r.State != goclaw.StateCompleted {
				l.t.Errorf("%s: a turn ended %s: %s", c.name, r.State, r.Error)
			}
		}
		if r.Trigger == goclaw.TriggerSpawn && strings.HasPrefix(r.Task, c.name+".") {
			tree[r.ID] = true
			if _, twice := of[r.Task]; twice {
				l.t.Errorf("%s was started twice", r.Task)
			}
			of[r.Task] = r
		}
	}
	if !tree[c.run] {
		l.t.Errorf("%s: the accepted run %s is lost", c.name, c.run)
	}
	for _, role := range c.roles() {
		r, ok := of[c.worker(role.name)]
		if !ok {
			if !role.may {
				l.t.Errorf("%s was not started", c.worker(role.name))
			}
			continue
		}
		l.checkWorker(c, role, r, tree)
	}
}

func (l *ledger) checkWorker(c *chat, role role, r goclaw.Run, tree map[string]bool) {
	stopped := r.State == goclaw.StateCancelled && role.stopped
	if r.State != goclaw.StateCompleted && !stopped {
		l.t.Errorf("%s ended %s: %s", r.Label, r.State, r.Error)
	}
	if r.State == goclaw.StateCompleted && r.Result != c.result(role.name) {
		l.t.Errorf("%s has the result %q", r.Label, r.Result)
	}
	if role.name != "boss" {
		l.checkEffect(r)
	}
	l.checkAnnounced(r, tree)
	if c.kind == chatControl && role.name == "w0" {
		l.checkSteered(c, r)
	}
}

// checkAnnounced counts in how many transcripts the result stands: it is one,
// its requester's or, if that was cancelled, the main agent's.
func (l *ledger) checkAnnounced(r goclaw.Run, tree map[string]bool) {
	head := "[Subagent: " + r.Label + "]"
	var by []goclaw.Run
	for _, taker := range l.runs {
		if !tree[taker.ID] {
			continue
		}
		for range l.told(taker, head) {
			by = append(by, taker)
		}
	}
	if len(by) != 1 {
		l.t.Errorf("%s is announced %d times", r.Label, len(by))
		return
	}
	l.sum.announced++
	taker := by[0]
	if taker.Session != r.Requester && taker.Trigger == goclaw.TriggerSpawn {
		l.t.Errorf("%s is announced to %s, not to its requester %s", r.Label, taker.Session, r.Requester)
	}
	if taker.State != goclaw.StateCompleted {
		return // it was cancelled before it could speak of it
	}
	if !slices.ContainsFunc(l.requests, func(q providertest.Recorded) bool { return tells(&q.Request, head) }) {
		l.t.Errorf("the result of %s is in no request", r.Label)
	}
}

// told counts the places of a run's transcript that hold head. Those that give
// back what they took hold nothing.
func (l *ledger) told(r goclaw.Run, head string) (n int) {
	for _, e := range l.events[r.ID] {
		switch {
		case e.End != nil && e.End.Returned:
			return 0
		case e.Prompt != nil:
			n += strings.Count(e.Prompt.Input.PlainText(), head)
		case e.Input != nil:
			n += strings.Count(e.Input.Message.PlainText(), head)
		case e.Result != nil:
			n += strings.Count(e.Result.Content, head)
		}
	}
	return n
}

// tells reports whether the newest messages of a request hold head.
func tells(r *providertest.Request, head string) bool {
	return strings.Contains(r.NewestText(), head) || slices.ContainsFunc(r.NewestResults(), func(res goclaw.ToolResult) bool {
		return strings.Contains(res.Content, head)
	})
}

// checkSteered: a message that was sent to a worker is in its transcript once.
func (l *ledger) checkSteered(c *chat, r goclaw.Run) {
	sent, read := 0, 0
	for _, e := range l.events[c.run] {
		if e.Result != nil && e.Result.Name == "subagents" && e.Result.Content == `{"status":"ok"}` {
			sent++
		}
	}
	for _, e := range l.events[r.ID] {
		switch {
		case e.Input != nil:
			read += strings.Count(e.Input.Message.PlainText(), c.steered())
		case e.End != nil:
			read += strings.Count(strings.Join(e.End.Unread, "\n"), c.steered())
		}
	}
	if read > 1 || read < sent {
		l.t.Errorf("%s: the message was sent %d times, and read %d times", r.Label, sent, read)
	}
	l.sum.steered += read
}

// checkEffect: a call that is on record as done has had its effect once; one
// that was interrupted, at most.
func (l *ledger) checkEffect(r goclaw.Run) {
	if !l.effects {
		return
	}
	n := l.lines[r.Label]
	l.sum.effects += n
	if n > 1 {
		l.t.Errorf("the side effect of %s happened %d times", r.Label, n)
	}
	asked := false
	for _, e := range l.events[r.ID] {
		if e.Intent != nil {
			asked = asked || slices.ContainsFunc(e.Intent.Calls, func(i goclaw.Intent) bool { return i.Name == "exec" })
		}
		switch res := e.Result; {
		case res == nil || res.Name != "exec":
		case strings.Contains(res.Content, "outcome is unknown"):
			l.sum.unknown++
		case res.IsError && r.State != goclaw.StateCancelled:
			l.t.Errorf("exec of %s failed: %s", r.Label, res.Content)
		case !res.IsError && n == 0:
			l.t.Errorf("exec of %s is on record as done, and its side effect is missing: %s", r.Label, l.story(r))
		}
	}
	if n > 0 && !asked {
		l.t.Errorf("the side effect of %s happened, and its intent is not on record", r.Label)
	}
}

// story is what is on record of a run.
func (l *ledger) story(r goclaw.Run) string {
	var b strings.Builder
	for _, e := range l.events[r.ID] {
		raw, err := json.Marshal(e)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "\n%s %.1500s", e.At.Time().Format(time.StampMilli), raw)
	}
	return b.String()
}

// step names a model call: whose it is, and how many replies came before.
type step struct {
	who     string
	replies int
}

// checkCalls holds the requests against the recorded replies. A request that
// comes after its reply was recorded is paid twice: only a process that slept
// meanwhile can't know better.
func (l *ledger) checkCalls() {
	recorded := map[step]goclaw.Millis{}
	before := map[goclaw.SessionKey]int{}
	for _, r := range l.runs {
		who := r.Task
		if r.Trigger != goclaw.TriggerSpawn {
			who = r.Session.Peer
		}
		for _, e := range l.events[r.ID] {
			if e.Model != nil {
				recorded[step{who, before[r.Session]}] = e.At
				before[r.Session]++
				l.sum.calls++
			}
		}
	}
	made := map[step]int{}
	for _, q := range l.requests {
		who, replies := caller(&q.Request)
		id := step{who, replies}
		made[id]++
		at, ok := recorded[id]
		came := l.arrivals[q.N]
		switch {
		case ok && goclaw.At(came) > at && l.slept(processOf(&q.Request), at.Time(), came):
			l.sum.late++
		case ok && goclaw.At(came) > at:
			l.t.Errorf("the model call %s#%d, recorded at %s, was paid again at %s by %s",
				who, replies, at.Time().Format(time.StampMilli), came.UTC().Format(time.StampMilli), processOf(&q.Request))
		case made[id] > 1:
			l.sum.repeated++
		}
	}
	for id := range recorded {
		if made[id] == 0 {
			l.t.Errorf("the reply %s#%d is on record, and nobody asked for it", id.who, id.replies)
		}
	}
}

// slept reports whether the process was stopped at the time at, and has woken
// by then.
func (l *ledger) slept(process string, at, then time.Time) bool {
	return slices.ContainsFunc(l.faults, func(f fault) bool {
		return f.process == process && !f.kill && f.at.Before(at.Add(time.Millisecond)) && !f.end.After(then)
	})
}

// checkFaults counts them, and times how soon the runs of those that died went
// on. What was hit again before that is timed from then.
func (l *ledger) checkFaults() {
	for i, f := range l.faults {
		if !f.kill {
			l.sum.pauses++
		} else {
			l.sum.kills++
		}
		if f.point {
			l.sum.atPoints++
		}
		if len(f.held) > 0 {
			l.sum.busy++
		}
		if !f.kill || f.since.IsZero() {
			continue
		}
		for _, id := range f.held {
			on := slices.IndexFunc(l.events[id], func(e goclaw.Event) bool { return e.At > goclaw.At(f.at) })
			if on < 0 {
				continue // the database had its end already, and recorded it after the death
			}
			at := l.events[id][on].At.Time()
			again := slices.ContainsFunc(l.faults[i+1:], func(g fault) bool {
				return g.at.Before(at) && (l.top.alone || slices.Contains(g.held, id))
			})
			if !again {
				l.sum.slowest = max(l.sum.slowest, at.Sub(f.since))
			}
		}
	}
}

// checkLogs: nothing panicked.
func (l *ledger) checkLogs() {
	for _, seat := range l.seats {
		b, err := os.ReadFile(l.log(seat))
		if err != nil {
			l.t.Error(err)
		}
		for _, word := range []string{"panic", "DATA RACE", "fatal error"} {
			if i := strings.Index(string(b), word); i >= 0 {
				l.t.Errorf("%s: %s", seat.name, b[max(0, i-500):min(len(b), i+2000)])
			}
		}
	}
}
