package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// Act is what to do about a job.
type Act string

// The acts.
const (
	Wait Act = "wait" // until Decision.Until
	Fire Act = "fire"
	Skip Act = "skip"
)

// Decision is what becomes of a job's due time.
type Decision struct {
	Act     Act
	Why     string        // of a skip
	Missed  int           // further due times that the firing stands for
	Next    goclaw.Millis // the job's next due time from now on, if it is not waited for
	Enabled bool
	Until   time.Time // of a wait; zero: until something changes
}

// Policy are the values that decisions follow; the zero value never backs off.
type Policy struct {
	Backoff []time.Duration // after so many failures in a row; the last holds for all further ones
}

// DefaultBackoff is for a Policy.
func DefaultBackoff() []time.Duration {
	return []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}
}

// Case is what a decision is made from.
type Case struct {
	Job    goclaw.CronJob
	Times  *Times
	Record Record
	Now    time.Time

	// Held says that the due time was on time, but could not run until now.
	Held bool
}

// CantRun begins the reason of a skip that counts as a failure: the job can't
// run as it is.
const CantRun = "can't run: "

// Record is what a job's firings tell of it.
type Record struct {
	Running  string // the unended run, if any
	Failures int    // in a row, up to now
	Failed   time.Time
	Error    string // of the last failure
	known    bool
	ran      bool
}

// ReadRecord reads firings, newest first. Failures before the moment since
// don't count: the job was changed then. It asks for more if the firings don't
// reach back far enough to tell.
func ReadRecord(firings []goclaw.Firing, since goclaw.Millis) (r Record, more bool) {
	for _, f := range firings {
		if r.known && r.ran {
			break
		}
		r.add(f, since)
	}
	return r, !r.known || !r.ran
}

func (r *Record) add(f goclaw.Firing, since goclaw.Millis) {
	if f.Run != "" && !r.ran {
		r.ran = true // runs of a job don't overlap: only the newest can be under way
		if !f.State.Ended() {
			r.Running = f.Run
		}
	}
	if f.At <= since {
		r.known = true
	}
	if r.known {
		return
	}
	switch {
	case f.Run == "" && !strings.HasPrefix(f.Skipped, CantRun):
	case f.State == goclaw.StateCompleted:
		r.known = true
	case f.Run == "", f.State == goclaw.StateFailed, f.State == goclaw.StateTimeout:
		r.Failures++
		if r.Failed.IsZero() {
			r.Failed, r.Error = max(f.At, f.FinishedAt).Time(), cmp.Or(f.Error, f.Skipped, string(f.State))
		}
	}
}

// Until is until when nothing runs after failures; zero: not at all.
func (p Policy) Until(r Record, now time.Time) time.Time {
	if r.Failures == 0 || len(p.Backoff) == 0 {
		return time.Time{}
	}
	from := r.Failed
	if from.After(now) {
		from = now // the system's clock was put back
	}
	return from.Add(p.Backoff[min(r.Failures, len(p.Backoff))-1])
}

// Decide says what becomes of the job's due time. Its Next, if it does not
// wait, is after the due time that it decides about, whatever the system's clock
// does: no due time is decided about twice.
func (p Policy) Decide(c Case) Decision {
	due := c.Job.Next.Time()
	switch {
	case !c.Job.Enabled || c.Job.Next == 0:
		return Decision{Act: Wait}
	case c.Now.Before(due):
		return Decision{Act: Wait, Until: due}
	}
	if c.Job.Schedule.Kind == goclaw.ScheduleAt {
		return p.decideOnce(c, due)
	}
	until := p.Until(c.Record, c.Now)
	switch {
	case c.Record.Running != "":
		return c.to(Skip, "the run before has not ended", c.Now)
	case c.Now.Before(until):
		return c.to(Skip, c.backingOff(until), until.Add(-time.Millisecond))
	case c.Job.Missed == goclaw.MissedSkip && !c.Held && c.Now.Sub(due) > c.grace(due):
		// A later due time may still be on time.
		d := c.to(Skip, "", c.Now.Add(-c.grace(due)-time.Millisecond))
		d.Why = missed(1 + d.Missed)
		return d
	}
	return c.to(Fire, "", c.Now)
}

// decideOnce decides about a job that is due once. It is disabled after it,
// and never repeated by itself: what failed may have had its effects.
func (p Policy) decideOnce(c Case, due time.Time) Decision {
	switch {
	case c.Record.Running != "": // a person started it before its time
		return Decision{Act: Wait, Until: c.Now.Add(time.Second)}
	case c.Job.Missed == goclaw.MissedSkip && !c.Held && c.Now.Sub(due) > leastGrace:
		return Decision{Act: Skip, Why: missed(1)}
	}
	return Decision{Act: Fire}
}

// backingOff words why nothing runs until a moment.
func (c Case) backingOff(until time.Time) string {
	failed := "it failed"
	if n := c.Record.Failures; n > 1 {
		failed += fmt.Sprintf(" %d times in a row", n)
	}
	return failed + "; it goes on at " + until.In(c.Times.zone).Format("2006-01-02 15:04:05 MST")
}

// to decides about the due time and those up to a moment.
func (c Case) to(act Act, why string, upTo time.Time) Decision {
	due := c.Job.Next.Time()
	if upTo.Before(due) {
		upTo = due
	}
	next, ok := c.Times.Next(upTo)
	if !ok {
		return Decision{Act: act, Why: why}
	}
	return Decision{Act: act, Why: why, Missed: c.Times.between(due, next), Next: goclaw.At(next), Enabled: true}
}

// leastGrace is how late a due time is still on time, however short its period.
const leastGrace = time.Minute

// grace is how late a due time is still on time: a tenth of the time to the
// next, but at least a minute, at most an hour, and never more than half of it.
func (c Case) grace(due time.Time) time.Duration {
	next, ok := c.Times.Next(due)
	if !ok {
		return leastGrace
	}
	period := next.Sub(due)
	return min(max(period/10, leastGrace), time.Hour, period/2)
}

func missed(n int) string {
	switch {
	case n == 1:
		return "missed: nothing could run then"
	case n > mostCounted:
		return fmt.Sprintf("more than %d due times were missed: nothing could run then", mostCounted)
	}
	return fmt.Sprintf("%d due times were missed: nothing could run then", n)
}
