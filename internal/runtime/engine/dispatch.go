package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"goclaw"
)

const (
	sweepEvery = time.Second // how soon what no wake told of is found
)

// Run dispatches until ctx ends. Then it lets the steps under way finish, for
// as long as Options.Drain, stops what is left, lets its runs go so that any
// owner can go on with them at once, and returns nil. It may be called once.
func (e *Engine) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		e.beat(ctx, work)
	}()
	err := e.dispatch(ctx, work)
	close(e.drain)
	patience := time.AfterFunc(e.o.Drain, func() { stop(errShutdown) })
	e.jobs.Wait()
	patience.Stop()
	stop(errShutdown)
	<-beating
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if rerr := e.o.Store.Release(release, e.o.Owner, goclaw.At(time.Now())); rerr != nil {
		err = errors.Join(err, fmt.Errorf("release runs: %w", rerr))
	}
	return err
}

// dispatch is the claim loop. Jobs live in work, which outlasts ctx until Run
// has told them why they stop.
func (e *Engine) dispatch(ctx, work context.Context) error {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	first, tidyAt := e.o.SoleOwner, time.Now()
	var next goclaw.Millis
	e.ended.Store(true) // whoever ran this home before may have left some
	changes := e.o.Changes
	for {
		if e.ended.Swap(false) {
			var err error
			if next, err = e.wakeRequesters(ctx); err != nil && ctx.Err() == nil {
				e.complain("announcements could not be looked at", err)
			}
		}
		found, err := e.claim(ctx, work, first)
		switch {
		case err == nil:
			first = first && found == e.o.Batch
		case ctx.Err() == nil:
			e.orphans.Store(true) // the claim may have been made
			e.complain("runs could not be claimed", err)
		}
		if found == e.o.Batch {
			continue
		}
		if now := time.Now(); !now.Before(tidyAt) {
			e.tidy(ctx)
			tidyAt = now.Add(time.Minute)
		}
		wait := time.Hour
		if next != 0 {
			wait = max(0, time.Until(next.Time()))
		}
		due.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake:
		case id, ok := <-changes:
			if !ok {
				changes = nil
				continue
			}
			e.ended.Store(true)
			e.changed(ctx, id)
		case <-due.C:
			e.ended.Store(true)
		case <-sweep.C:
			e.ended.Store(true)
			e.lookForCancels(ctx)
		}
	}
}

// claim takes what can run and starts it.
func (e *Engine) claim(ctx, work context.Context, deadOwners bool) (int, error) {
	now := goclaw.At(time.Now())
	var before goclaw.Millis
	if e.o.TurnsAfter > 0 {
		before = now.Add(-e.o.TurnsAfter)
	}
	claimed, err := e.o.Store.Claim(ctx, goclaw.ClaimRequest{
		Owner: e.o.Owner, Now: now, Lease: e.o.Lease, Max: e.o.Batch, TurnsBefore: before,
		MaxWorkers: e.o.MaxWorkers, MaxPerLane: e.o.MaxPerLane, MaxPerAgent: e.o.MaxPerAgent, DeadOwners: deadOwners,
	})
	if err != nil {
		return 0, err
	}
	// The claim began a lease, or renewed it. After one that was over, only a
	// heartbeat tells what of the rest is still ours.
	if over := int64(now) >= e.sure.Load(); len(claimed) > 0 && !(over && len(e.snapshot()) > 0) {
		e.sure.Store(max(e.sure.Load(), int64(now.Add(e.o.Lease))))
	}
	for _, c := range claimed {
		e.start(work, c)
	}
	return len(claimed), nil
}

func (e *Engine) start(work context.Context, c goclaw.Claimed) {
	if c.TakeOver {
		e.resumed.Add(1)
		e.remember(c.Run.ID)
		e.o.Log.Info("resuming", "run", c.Run.ID, "session", c.Run.Session.String(), "epoch", c.Run.Epoch)
	}
	j := newJob(work, e, c)
	e.mu.Lock()
	e.inFlight[c.Run.ID] = j
	if why, asked := e.early[c.Run.ID]; asked {
		j.stop(cancelled{why})
		delete(e.early, c.Run.ID)
	}
	e.mu.Unlock()
	e.jobs.Go(func() {
		defer func() {
			e.mu.Lock()
			if e.inFlight[j.r.ID] == j {
				delete(e.inFlight, j.r.ID)
			}
			e.mu.Unlock()
			j.release()
			e.ended.Store(true)
			e.bell.ring()
			e.Wake()
		}()
		j.run()
	})
}

// Settle ends the runs whose cancellation was asked, and starts nothing else.
// It is for a process that does not dispatch; with SoleOwner it also settles
// what a dead owner left.
func (e *Engine) Settle(ctx context.Context) error {
	claimed, err := e.o.Store.Claim(ctx, goclaw.ClaimRequest{
		Owner: e.o.Owner, Now: goclaw.At(time.Now()), Lease: e.o.Lease, Max: e.o.Batch,
		OnlyCancelled: true, DeadOwners: e.o.SoleOwner,
	})
	if err != nil {
		return fmt.Errorf("settle cancelled runs: %w", err)
	}
	for _, c := range claimed {
		e.start(ctx, c)
	}
	e.jobs.Wait()
	return nil
}

// changed takes note of what another process did.
func (e *Engine) changed(ctx context.Context, id string) {
	e.bell.ring()
	e.lookForCancels(ctx)
	if id == "" {
		return
	}
	e.mu.Lock()
	_, ours := e.inFlight[id]
	e.mu.Unlock()
	if ours {
		return
	}
	if run, err := e.o.Store.Run(ctx, id); err == nil {
		e.publishRun(run)
	}
}

// remember notes a takeover, for people to be told of.
func (e *Engine) remember(id string) {
	const most = 100
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recovered = append(e.recovered, id)
	e.recovered = e.recovered[max(0, len(e.recovered)-most):]
}

// Recovered returns the unended runs that this process has taken over.
func (e *Engine) Recovered(ctx context.Context) ([]goclaw.Run, error) {
	e.mu.Lock()
	ids := slices.Clone(e.recovered)
	e.mu.Unlock()
	var runs []goclaw.Run
	for _, id := range ids {
		r, err := e.o.Store.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		if !r.State.Ended() {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// beat renews the lease at a third of its length while there is work, and ends
// the work that was lost. It outlasts ctx until the work has stopped.
func (e *Engine) beat(ctx, work context.Context) {
	tick := time.NewTicker(e.o.Lease / 3)
	defer tick.Stop()
	var alone map[string]int64 // the store says that they are ours, and no job works on them
	for {
		select {
		case <-work.Done():
			return
		case <-tick.C:
		}
		held := e.snapshot()
		if len(held) == 0 && !e.orphans.Load() {
			continue
		}
		pulse, err := e.renew(ctx)
		if err != nil {
			e.complain("the lease could not be renewed", err)
			continue
		}
		alone = e.adopt(ctx, work, pulse.Held, alone)
		e.orphans.Store(len(alone) > 0)
	}
}

// renew renews the lease, stops the jobs of runs that are not ours any more, and
// tells what is.
func (e *Engine) renew(ctx context.Context) (goclaw.Pulse, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.Lease/3)
	defer cancel()
	held, asked := e.snapshot(), goclaw.At(time.Now())
	pulse, err := e.o.Store.Heartbeat(bounded, goclaw.Heartbeat{Owner: e.o.Owner, Now: asked, Lease: e.o.Lease})
	if err != nil {
		return pulse, err
	}
	for id, j := range held {
		if pulse.Held[id] != j.fence.Epoch && e.holds(id, j) {
			j.stop(errLost)
		}
	}
	e.sure.Store(int64(asked.Add(e.o.Lease)))
	return pulse, nil
}

// adopt starts jobs for runs that are ours at two beats in a row without one:
// the answer to their claim was lost, or their end could not be recorded. It
// returns those that are so for the first time.
func (e *Engine) adopt(ctx, work context.Context, held, before map[string]int64) map[string]int64 {
	alone := map[string]int64{}
	now := e.snapshot()
	for id, epoch := range held {
		if now[id] != nil || ctx.Err() != nil {
			continue
		}
		if before[id] != epoch {
			alone[id] = epoch
			continue
		}
		run, err := e.o.Store.Run(ctx, id)
		switch {
		case err != nil:
			alone[id] = epoch
		case run.State == goclaw.StateRunning && run.Owner == e.o.Owner && run.Epoch == epoch:
			e.start(work, goclaw.Claimed{Run: run, TakeOver: true})
		}
	}
	return alone
}

// complain logs what fails, again only every half minute: what is tried each
// second would fill the log while a database is away.
func (e *Engine) complain(what string, err error) {
	const again = 30 * time.Second
	e.mu.Lock()
	last, now := e.complaints[what], time.Now()
	quiet := !last.IsZero() && now.Sub(last) < again
	if !quiet {
		e.complaints[what] = now
	}
	e.mu.Unlock()
	if !quiet {
		e.o.Log.Error(what+"; trying again", "err", err)
	}
}

func (e *Engine) snapshot() map[string]*job {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := make(map[string]*job, len(e.inFlight))
	for id, j := range e.inFlight {
		held[id] = j
	}
	return held
}

func (e *Engine) holds(id string, j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inFlight[id] == j
}

// lookForCancels finds cancellations that another process asked for.
func (e *Engine) lookForCancels(ctx context.Context) {
	if len(e.snapshot()) == 0 {
		return
	}
	ids, err := e.o.Store.Asked(ctx, e.o.Owner)
	if err != nil {
		if ctx.Err() == nil {
			e.complain("cancellations could not be looked at", err)
		}
		return
	}
	for _, id := range ids {
		run, err := e.o.Store.Run(ctx, id)
		if err != nil {
			continue // the next look finds it again
		}
		e.stopJob(id, run.CancelWhy)
	}
}

func (e *Engine) stopJob(id, why string) {
	e.mu.Lock()
	j := e.inFlight[id]
	e.mu.Unlock()
	if j != nil {
		j.stop(cancelled{why})
	}
}

// stopAsked stops the job of a run whose cancellation was just recorded. If the
// run is ours and has no job, its claim was committed a moment ago and its job
// is about to start.
func (e *Engine) stopAsked(r goclaw.Run, why string) {
	e.mu.Lock()
	j := e.inFlight[r.ID]
	if j == nil && r.State == goclaw.StateRunning && r.Owner == e.o.Owner {
		e.early[r.ID] = why
	}
	e.mu.Unlock()
	if j != nil {
		j.stop(cancelled{why})
	}
}

func (e *Engine) tidy(ctx context.Context) {
	var before goclaw.Millis
	if e.o.ArchiveAfter > 0 {
		before = goclaw.At(time.Now().Add(-e.o.ArchiveAfter))
	}
	if _, err := e.o.Store.Tidy(ctx, goclaw.At(time.Now()), before); err != nil && ctx.Err() == nil {
		e.complain("sessions could not be tidied", err)
	}
}
