package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"goclaw"
)

const (
	askPause = time.Second            // how soon a pause that another process lifted is noticed
	askPurse = 250 * time.Millisecond // how soon what other processes gave back is
)

// admit lets a model call through: not while paused, within the budgets and
// the provider's allowance. It may lower req.MaxTokens. What it took of the
// allowance is corrected by giveRate.
func (j *job) admit(req *goclaw.ModelRequest, billed bool) (goclaw.RateRequest, error) {
	if err := j.mayCall(); err != nil {
		return goclaw.RateRequest{}, err
	}
	asked := time.Now()
	rate, err := j.takeRate(*req)
	if err == nil {
		err = j.afford(req, billed)
	}
	if err == nil && time.Since(asked) > askPause {
		err = j.mayCall() // it may have been set meanwhile
	}
	if err == nil {
		err = j.ours()
	}
	return rate, err
}

// ours makes sure that the run is, before something is done that can't be taken
// back: a process that was frozen past its lease may have lost it.
func (j *job) ours() error {
	if j.e.o.SoleOwner || int64(goclaw.At(time.Now())) < j.e.sure.Load() {
		return nil
	}
	if _, err := ask(j, "lease", j.e.renew); err != nil {
		return err
	}
	return context.Cause(j.ctx)
}

// mayCall waits while the kill switch is on.
func (j *job) mayCall() error {
	for told := false; ; told = true {
		lifted := j.e.bell.listen()
		p, err := ask(j, "pause", j.e.o.Store.Paused)
		if err != nil {
			return err
		}
		if p.At == 0 {
			return nil
		}
		if !told {
			j.tell(strings.TrimRight(fmt.Sprintf("paused since %s; goclaw resume goes on. %s", p.At.Time().In(j.e.o.Zone).Format("15:04"), p.Why), " "))
		}
		if err := j.rest(askPause, lifted); err != nil {
			return err
		}
	}
}

// takeRate waits until the provider's allowance has room for the request. It
// returns what to give back once the reply tells what it really took.
func (j *job) takeRate(req goclaw.ModelRequest) (goclaw.RateRequest, error) {
	name, _, _ := strings.Cut(j.r.Profile.Model, "/")
	rate, limited := j.e.o.Rates[name]
	if !limited {
		return goclaw.RateRequest{}, nil
	}
	rate.Name, rate.Tokens = name, j.weigh(req)+int64(req.MaxTokens)
	for told := false; ; told = true {
		rate.Now = goclaw.At(time.Now())
		at, err := ask(j, "allowance", func(ctx context.Context) (goclaw.Millis, error) { return j.e.o.Store.TakeRate(ctx, rate) })
		if err != nil {
			return goclaw.RateRequest{}, err
		}
		if at == 0 {
			return rate, nil
		}
		wait := time.Until(at.Time())
		if !told {
			j.tell(fmt.Sprintf("the allowance of %s for this minute is used up; going on in %s", name, wait.Round(100*time.Millisecond)))
		}
		if err := j.rest(wait, nil); err != nil {
			return goclaw.RateRequest{}, err
		}
	}
}

// giveRate corrects what was taken by what the reply says.
func (j *job) giveRate(rate goclaw.RateRequest, u goclaw.Usage) {
	if rate.Name == "" || u.IsZero() {
		return
	}
	rate.Tokens -= u.Input + u.Output
	rate.Now = goclaw.At(time.Now())
	if err := j.e.o.Store.GiveRate(j.ctx, rate); err != nil {
		j.e.o.Log.Warn("the allowance could not be corrected", "provider", rate.Name, "err", err)
	}
}

// tell shows why the run does not go on.
func (j *job) tell(why string) {
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeRetry, Session: j.r.Session, RunID: j.r.ID, Text: why})
}
