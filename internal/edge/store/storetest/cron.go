package storetest

import (
	"fmt"
	"strings"

	"goclaw"
)

// job is a cron job of the agent a that is due at next.
func (w *world) job(id string, next goclaw.Millis) goclaw.CronJob {
	return goclaw.CronJob{
		ID: id, Name: "job " + id, Agent: "a", Message: "do " + id,
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 60_000, Anchor: start},
		Target:   goclaw.TargetIsolated, Missed: goclaw.MissedOnce, Enabled: true, Next: next, CreatedAt: w.now, UpdatedAt: w.now,
	}
}

func (w *world) put(j goclaw.CronJob) goclaw.CronJob {
	w.Helper()
	stored, err := w.PutCronJob(w.Context(), j)
	w.ok(err)
	return stored
}

// fire is a firing of j at its due time as the run with that id, after which it
// is due a minute later.
func (w *world) fire(j goclaw.CronJob, run string) goclaw.CronFire {
	return goclaw.CronFire{
		Job: j, Firing: goclaw.Firing{Job: j.ID, Due: j.Next, At: w.now}, Next: j.Next + 60_000, Enabled: true,
		Run: &goclaw.Acceptance{Key: "cron " + j.ID + " " + run, Run: goclaw.Run{
			ID: run, Session: j.Key(), Trigger: goclaw.TriggerCron, Task: j.Message, State: goclaw.StateQueued, CreatedAt: w.now,
		}},
	}
}

func (w *world) fires(f goclaw.CronFire) (goclaw.CronJob, goclaw.Run) {
	w.Helper()
	j, run, err := w.FireCronJob(w.Context(), f)
	w.ok(err)
	return j, run
}

// failsFire fails unless the firing fails with want and nothing was written.
func (w *world) failsFire(what string, f goclaw.CronFire, want error) {
	w.Helper()
	before := w.crontab()
	_, _, err := w.FireCronJob(w.Context(), f)
	w.fails(what, err, want)
	w.same("after "+what, w.crontab(), before)
}

// crontab is all that can be seen of the crontab and of its runs.
func (w *world) crontab() []any {
	w.Helper()
	jobs, err := w.CronJobs(w.Context())
	w.ok(err)
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{})
	w.ok(err)
	sessions, err := w.AllSessions(w.Context())
	w.ok(err)
	all := []any{jobs, runs, sessions}
	for _, j := range jobs {
		all = append(all, w.firings(j.ID))
	}
	return all
}

func (w *world) firings(job string) []goclaw.Firing {
	w.Helper()
	firings, err := w.Firings(w.Context(), job, 0)
	w.ok(err)
	return firings
}

// due fails unless these jobs are due, in order, and then the next.
func (w *world) due(now goclaw.Millis, want string, next goclaw.Millis) []goclaw.CronJob {
	w.Helper()
	due, then, err := w.DueCronJobs(w.Context(), now)
	w.ok(err)
	var ids []string
	for _, j := range due {
		ids = append(ids, j.ID)
	}
	w.same("due", strings.Join(ids, " "), want)
	w.same("next", then, next)
	return due
}

func testCronJobs(w *world) {
	_, err := w.CronJob(w.Context(), "none")
	w.fails("a job that is not there", err, goclaw.ErrNotFound)
	jobs, err := w.CronJobs(w.Context())
	w.ok(err)
	w.same("jobs", len(jobs), 0)
	seconds := 90
	full := goclaw.CronJob{
		ID: "morning-brief", Name: "Morning <brief> ☀", Agent: "b",
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "0 7 * * 1-5", Zone: "Europe/Berlin"},
		Target:   goclaw.TargetMain, Session: goclaw.APIKey("b", "x:y"), Message: "say \x00 'good' morning\n",
		Model: "p/m", Thinking: "low", TimeoutSeconds: &seconds, Definition: "planner", Budget: goclaw.Limits{USD: 0.5},
		Missed: goclaw.MissedSkip, Heartbeat: true, Enabled: true, Next: start + 5, CreatedAt: start, UpdatedAt: start + 1,
	}
	stored := w.put(full)
	seconds = 7 // nothing is shared
	want := full
	whole := 90
	want.TimeoutSeconds, want.Revision = &whole, 1
	got, err := w.CronJob(w.Context(), full.ID)
	w.ok(err)
	w.same("stored job", got, want)
	stored.TimeoutSeconds = &whole
	w.same("what Put returned", stored, want)
	*got.TimeoutSeconds = 8
	again, err := w.CronJob(w.Context(), full.ID)
	w.ok(err)
	w.same("stored job", again, want)
	w.put(w.job("z", 0))
	w.put(w.job("m", 0))
	jobs, err = w.CronJobs(w.Context())
	w.ok(err)
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	w.same("jobs by agent and id", ids, []string{"m", "z", "morning-brief"})
	w.same("a job of the list", jobs[2], want)
}

func testCronRefuses(w *world) {
	for what, change := range map[string]func(*goclaw.CronJob){
		"no id":              func(j *goclaw.CronJob) { j.ID = "" },
		"no agent":           func(j *goclaw.CronJob) { j.Agent = "" },
		"a session like air": func(j *goclaw.CronJob) { j.Session = goclaw.SessionKey{Agent: "a"} },
		"due before 1970":    func(j *goclaw.CronJob) { j.Next = -1 },
	} {
		j := w.job("j", start)
		change(&j)
		_, err := w.PutCronJob(w.Context(), j)
		w.refused("a job with "+what, err)
	}
	j := w.put(w.job("j", start))
	before := w.crontab()
	for what, change := range map[string]func(*goclaw.CronFire){
		"of another job":      func(f *goclaw.CronFire) { f.Firing.Job = "k" },
		"without a due time":  func(f *goclaw.CronFire) { f.Firing.Due = 0 },
		"of nothing":          func(f *goclaw.CronFire) { f.Run = nil },
		"skipped with a run":  func(f *goclaw.CronFire) { f.Firing.Skipped = "why" },
		"that coalesces":      func(f *goclaw.CronFire) { f.Run.Coalesce = true },
		"as a user's turn":    func(f *goclaw.CronFire) { f.Run.Run.Trigger = goclaw.TriggerUser },
		"of a run under way":  func(f *goclaw.CronFire) { f.Run.Run.State = goclaw.StateRunning },
		"with a strange blob": func(f *goclaw.CronFire) { f.Run.Blobs = []goclaw.Blob{{SHA256: "x", Data: []byte("y")}} },
		"due next never ago":  func(f *goclaw.CronFire) { f.Next = -1 },
	} {
		f := w.fire(j, "r")
		change(&f)
		_, _, err := w.FireCronJob(w.Context(), f)
		w.refused("a firing "+what, err)
	}
	w.same("after what was refused", w.crontab(), before)
}

func testCronRevision(w *world) {
	early := w.job("j", start)
	early.Revision = 1
	_, err := w.PutCronJob(w.Context(), early)
	w.fails("a change of nothing", err, goclaw.ErrChanged)
	first := w.put(w.job("j", start))
	_, err = w.PutCronJob(w.Context(), w.job("j", start+9))
	w.fails("a second job of that id", err, goclaw.ErrChanged)
	second := first
	second.Message = "do better"
	second = w.put(second)
	w.same("revision", second.Revision, int64(2))
	first.Message = "do worse"
	_, err = w.PutCronJob(w.Context(), first)
	w.fails("a change of what was changed", err, goclaw.ErrChanged)
	j, _ := w.fires(w.fire(second, "r"))
	w.same("revision after a firing", j.Revision, int64(3))
	_, err = w.PutCronJob(w.Context(), second)
	w.fails("a change of what was fired", err, goclaw.ErrChanged)
	got, err := w.CronJob(w.Context(), "j")
	w.ok(err)
	w.same("job", got, j)
}

func testCronDue(w *world) {
	w.due(start, "", 0)
	w.put(w.job("late", start+500))
	w.put(w.job("b", start+10))
	w.put(w.job("a", start+10))
	w.put(w.job("first", start+5))
	w.put(w.job("never", 0))
	off := w.job("off", start)
	off.Enabled = false
	w.put(off)
	w.due(start+4, "", start+5)
	w.due(start+5, "first", start+10)
	due := w.due(start+10, "first a b", start+500)
	got, err := w.CronJob(w.Context(), "first")
	w.ok(err)
	w.same("a job that is due", due[0], got)
	w.due(start+500, "first a b late", 0)
	w.fires(w.fire(due[0], "r"))
	w.due(start+10, "a b", start+500)
	once := w.fire(due[1], "once")
	once.Next, once.Enabled = 0, false
	w.fires(once)
	w.due(start+500, "b late", start+60_005)
}

func testCronFires(w *world) {
	j := w.put(w.job("j", start))
	w.now += 40
	f := w.fire(j, "r")
	f.Firing.Missed = 3
	f.Run.Blobs = []goclaw.Blob{blob("spec")}
	f.Run.Run.Profile = goclaw.Profile{Agent: "a", Model: "p/m"}
	after, run := w.fires(f)
	want := j
	want.Next, want.Revision = start+60_000, 2
	w.same("job", after, want)
	got, err := w.CronJob(w.Context(), "j")
	w.ok(err)
	w.same("stored job", got, want)
	w.same("run", run, w.find("r"))
	if run.Ordinal == 0 || run.Root != "r" || run.State != goclaw.StateQueued || run.Idempotent != "cron j r" {
		w.Fatalf("run: %+v", run)
	}
	if data, err := w.Blob(w.Context(), blob("spec").SHA256); err != nil || string(data) != "spec" {
		w.Fatalf("blob %q, error %v", data, err)
	}
	head, err := w.Session(w.Context(), j.Key())
	w.ok(err)
	w.same("turns", head.Turns, 1)
	firing := goclaw.Firing{Job: "j", Due: start, At: w.now, Missed: 3, Run: "r", State: goclaw.StateQueued}
	w.same("firings", w.firings("j"), []goclaw.Firing{firing})

	cost := 0.25
	claimed := w.claims(w.request("o", 9), "r")[0].Run
	w.ok(w.End(w.Context(), claimed.Fence(), goclaw.Ending{State: goclaw.StateFailed, Result: "half", Error: "why",
		Batch: goclaw.Batch{Now: w.now + 9, Usage: &goclaw.Usage{Input: 4, Output: 3, CacheRead: 2, CacheWrite: 1, CostUSD: &cost}}}))
	firing.State, firing.Result, firing.Error = goclaw.StateFailed, "half", "why"
	firing.StartedAt, firing.FinishedAt = w.now, w.now+9
	firing.Usage = goclaw.Usage{Input: 4, Output: 3, CacheRead: 2, CacheWrite: 1, CostUSD: &cost}
	w.same("firings", w.firings("j"), []goclaw.Firing{firing})
}

func testCronOnce(w *world) {
	j := w.put(w.job("j", start))
	w.fires(w.fire(j, "r1"))
	w.failsFire("a firing of what was fired", w.fire(j, "r2"), goclaw.ErrChanged)
	// Somebody sets the job back to a time that was decided about.
	back, err := w.CronJob(w.Context(), "j")
	w.ok(err)
	back.Next = start
	back = w.put(back)
	w.failsFire("a second firing of a due time", w.fire(back, "r2"), goclaw.ErrChanged)
	skip := w.fire(back, "")
	skip.Run, skip.Firing.Skipped = nil, "too late"
	w.failsFire("a skip of what was fired", skip, goclaw.ErrChanged)
	other := w.fire(w.put(w.job("k", start)), "r2")
	w.fires(other)
	back.Next = start + 1
	w.fires(w.fire(w.put(back), "r3"))
	w.same("firings", len(w.firings("j")), 2)
}

func testCronSkips(w *world) {
	j := w.put(w.job("j", start))
	f := w.fire(j, "")
	f.Run, f.Firing.Skipped, f.Firing.Missed = nil, "the gateway was down", 4
	// Nothing runs, so that nothing can overlap.
	f.Alone, f.IfQuiet, f.MaxActive = true, true, 1
	busy := w.put(w.job("busy", start))
	w.fires(w.fire(busy, "other"))
	after, run := w.fires(f)
	w.same("run", run, goclaw.Run{})
	w.same("next", after.Next, start+60_000)
	w.same("firings", w.firings("j"), []goclaw.Firing{{Job: "j", Due: start, At: w.now, Skipped: "the gateway was down", Missed: 4}})
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{})
	w.ok(err)
	w.same("runs", ids(runs), []string{"other"})
}

// testCronManual: who fires by hand changes neither when the job is next due
// nor whether it is on, and need not know its last revision.
func testCronManual(w *world) {
	by := func(j goclaw.CronJob, run string) goclaw.CronFire {
		f := w.fire(j, run)
		f.Firing.Manual, f.Firing.Due, f.Next, f.Enabled = true, w.now, start+999, true
		return f
	}
	w.failsFire("a firing of nothing by hand", by(w.job("j", start), "r0"), goclaw.ErrNotFound)
	off := w.job("j", start)
	off.Enabled = false
	j := w.put(off)
	after, run := w.fires(by(j, "r1"))
	j.Revision = 2
	w.same("job", after, j)
	w.same("run", run, w.find("r1"))
	stale := j
	stale.Revision = 1
	after, _ = w.fires(by(stale, "r2")) // at the same moment, too
	j.Revision = 3
	w.same("job", after, j)
	// A due time is the schedule's, whoever fires by hand in that moment.
	w.now = start
	j.Enabled = true
	j = w.put(j)
	w.fires(by(j, "r3"))
	j, err := w.CronJob(w.Context(), "j")
	w.ok(err)
	w.fires(w.fire(j, "r4"))
	var got []string
	for _, f := range w.firings("j") {
		got = append(got, fmt.Sprint(f.Run, " ", f.Manual))
	}
	w.same("firings", got, []string{"r4 false", "r3 true", "r2 true", "r1 true"})
}

// testCronKey: the same firing made again, whatever has happened to the job
// meanwhile, is answered with the run that it started.
func testCronKey(w *world) {
	j := w.put(w.job("j", start))
	f := w.fire(j, "r")
	f.IfQuiet, f.Alone, f.MaxActive = true, true, 1
	after, run := w.fires(f)
	before := w.crontab()
	f.Run.Run.ID = "another"
	again, same := w.fires(f)
	w.same("job", again, after)
	w.same("run", same, run)
	f.Firing.Manual = true
	_, same = w.fires(f)
	w.same("run", same, run)
	w.same("after all", w.crontab(), before)
	w.end(w.claims(w.request("o", 9), "r")[0].Run)
	_, same = w.fires(f)
	w.same("state", same.State, goclaw.StateCompleted)
	w.same("firings", len(w.firings("j")), 1)
}

func testCronBusy(w *world) {
	j := w.put(w.job("j", start))
	main := w.fire(j, "r1")
	main.Run.Run.Session = goclaw.MainKey("a")

	// The session's own turn.
	w.accept(w.turn("turn", "a"))
	quiet := main
	quiet.IfQuiet = true
	w.failsFire("a firing into a busy session", quiet, goclaw.ErrBusy)
	w.end(w.claims(w.request("o", 9), "turn")[0].Run)
	j, _ = w.fires(quiet)

	// A run that the job fired, in whatever session.
	next := w.fire(j, "r2")
	next.Alone = true
	w.failsFire("a firing beside the last", next, goclaw.ErrBusy)
	hand := next
	hand.Firing.Manual = true
	w.failsFire("a firing by hand beside the last", hand, goclaw.ErrBusy)

	// How many the crontab has under way: turns and heartbeats are none.
	k := w.put(w.job("k", start))
	heart := w.fire(k, "beat")
	heart.Run.Run.Trigger, heart.Alone, heart.MaxActive = goclaw.TriggerHeartbeat, true, 2
	k, _ = w.fires(heart)
	w.accept(w.turn("turn 2", "b"))
	bound := w.fire(k, "r3")
	bound.MaxActive = 1
	w.failsFire("one more than may be", bound, goclaw.ErrBusy)
	alone := w.fire(k, "r3")
	alone.Alone = true
	w.failsFire("a firing beside a heartbeat", alone, goclaw.ErrBusy)
	bound.MaxActive = 2
	k, _ = w.fires(bound)
	w.same("revision", k.Revision, int64(3))

	for _, one := range w.claim(w.request("o", 9)) {
		w.end(one.Run)
	}
	for _, one := range w.claim(w.request("o", 9)) { // what came after it in its session
		w.end(one.Run)
	}
	next.MaxActive, next.IfQuiet = 1, true
	w.fires(next)
}

// testCronAccepts: a firing's run is accepted as any other.
func testCronAccepts(w *world) {
	j := w.put(w.job("j", start))
	parent := w.begin(w.turn("parent", "b"), "o")
	fence := parent.Fence()
	f := w.fire(j, "r")
	stale := fence
	stale.Epoch++
	f.Run.ParentFence = &stale
	w.failsFire("a firing for a zombie", f, goclaw.ErrFenced)
	f.Run.ParentFence = &fence
	f.Run.Run.ID = "parent"
	_, _, err := w.FireCronJob(w.Context(), f)
	w.refused("a firing as a run that there is", err)
	w.same("firings", len(w.firings("j")), 0)
	f.Run.Run.ID = "r"
	j, _ = w.fires(f)
	// The next of the same session waits for its turn.
	j, _ = w.fires(w.fire(j, "r2"))
	w.fires(w.fire(j, "r3"))
	w.end(w.claims(w.request("o", 9), "r")[0].Run)
	w.end(w.claims(w.request("o", 9), "r2")[0].Run)
	w.claims(w.request("o", 9), "r3")
}

func testCronRemoved(w *world) {
	w.fails("removal of nothing", w.RemoveCronJob(w.Context(), "j"), goclaw.ErrNotFound)
	j := w.put(w.job("j", start))
	w.put(w.job("k", start+7))
	first := w.fire(j, "r")
	j, _ = w.fires(first)
	w.ok(w.RemoveCronJob(w.Context(), "j"))
	w.fails("second removal", w.RemoveCronJob(w.Context(), "j"), goclaw.ErrNotFound)
	_, err := w.CronJob(w.Context(), "j")
	w.fails("a removed job", err, goclaw.ErrNotFound)
	w.same("firings", len(w.firings("j")), 1)
	w.same("run", w.find("r").State, goclaw.StateQueued)
	w.due(start+9, "k", 0)
	w.failsFire("a firing of a removed job", w.fire(j, "r2"), goclaw.ErrChanged)
	_, err = w.PutCronJob(w.Context(), j)
	w.fails("a change of a removed job", err, goclaw.ErrChanged)
	again := w.put(w.job("j", start+60_000))
	w.same("revision", again.Revision, int64(1))
	w.fires(w.fire(again, "r2"))
	w.same("firings", len(w.firings("j")), 2)
}

func testCronFirings(w *world) {
	w.same("firings of nothing", len(w.firings("none")), 0)
	j, k := w.put(w.job("j", start)), w.put(w.job("k", start))
	for i := range 4 {
		j, _ = w.fires(w.fire(j, fmt.Sprint("j", i)))
		k, _ = w.fires(w.fire(k, fmt.Sprint("k", i)))
	}
	for limit, want := range []string{"j3 j2 j1 j0", "j3", "j3 j2", "j3 j2 j1", "j3 j2 j1 j0", "j3 j2 j1 j0"} {
		firings, err := w.Firings(w.Context(), "j", limit)
		w.ok(err)
		var got []string
		for _, f := range firings {
			got = append(got, f.Run)
		}
		w.same(fmt.Sprint("at most ", limit), strings.Join(got, " "), want)
	}
}

func testCronTrims(w *world) {
	jobs := []goclaw.CronJob{w.put(w.job("j", start)), w.put(w.job("k", start)), w.put(w.job("gone", start))}
	for i := range 5 {
		for n := range jobs {
			jobs[n], _ = w.fires(w.fire(jobs[n], fmt.Sprint(jobs[n].ID, i)))
		}
	}
	skipped := w.fire(jobs[0], "")
	skipped.Run, skipped.Firing.Skipped = nil, "why"
	w.fires(skipped)
	w.ok(w.RemoveCronJob(w.Context(), "gone"))
	trims := func(keep, removed int, want ...string) {
		w.Helper()
		n, err := w.TrimFirings(w.Context(), keep)
		w.ok(err)
		w.same(fmt.Sprint("removed by ", keep), n, removed)
		for i, job := range []string{"j", "k", "gone"} {
			var got []string
			for _, f := range w.firings(job) {
				got = append(got, f.Run+f.Skipped)
			}
			w.same(fmt.Sprint(job, " after ", keep), strings.Join(got, " "), want[i])
		}
	}
	// Whatever there is too much of has not ended.
	trims(3, 0, "why j4 j3 j2 j1 j0", "k4 k3 k2 k1 k0", "gone4 gone3 gone2 gone1 gone0")
	for _, one := range w.claim(w.request("o", 9)) {
		w.end(one.Run) // the first of each job
	}
	trims(5, 1, "why j4 j3 j2 j1", "k4 k3 k2 k1 k0", "gone4 gone3 gone2 gone1 gone0")
	trims(4, 2, "why j4 j3 j2 j1", "k4 k3 k2 k1", "gone4 gone3 gone2 gone1")
	trims(4, 0, "why j4 j3 j2 j1", "k4 k3 k2 k1", "gone4 gone3 gone2 gone1")
}
