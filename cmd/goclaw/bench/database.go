package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// database measures the store without engine, HTTP and model.
func (b *bench) database(ctx context.Context) (_ []Figure, err error) {
	s, err := sqlite.Open(ctx, filepath.Join(b.dir, "alone.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	alone := sample{}
	for i := range min(b.size.runs, 200) {
		began := time.Now()
		if err := cycle(ctx, s, fmt.Sprintf("alone-%d", i)); err != nil {
			return nil, err
		}
		alone = append(alone, time.Since(began))
	}
	commits := s.Commits()
	began := time.Now()
	if err := b.together(b.size.writers, b.size.runs, func(i int) error { return cycle(ctx, s, fmt.Sprintf("many-%d", i)) }); err != nil {
		return nil, err
	}
	took := time.Since(began)
	return []Figure{{
		ID: "database", Name: "Durable runs per second, database alone",
		Values: []Value{
			count("runs", float64(b.size.runs)/took.Seconds(), "/s"), count("transactions per commit", 4*float64(b.size.runs)/float64(s.Commits()-commits), ""),
			ms("one run alone p50", alone.median()),
		},
		Means: "The bound that the store sets: four durable transactions a run, as the engine makes them. Writers that come at the same time share a commit; one alone waits for four.",
		How:   fmt.Sprintf("%d cycles of accept, claim, append, end by %d writers, in this process, without engine, HTTP or model.", b.size.runs, b.size.writers),
	}}, nil
}

// cycle takes one run through the store, though not always its own: a claim
// gives the oldest.
func cycle(ctx context.Context, s *sqlite.Store, user string) error {
	now := goclaw.At(time.Now())
	key := goclaw.APIKey("main", user)
	_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
		ID: uuid.NewString(), Session: key, Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, Task: "Hello.", CreatedAt: now,
	}})
	if err != nil {
		return err
	}
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "bench", Now: now, Lease: time.Minute, Max: 1})
	if err != nil {
		return err
	}
	for _, c := range claimed {
		f := c.Run.Fence()
		input := goclaw.Text(goclaw.RoleUser, "Hello.")
		err := s.Append(ctx, f, goclaw.Batch{Now: now, Events: []goclaw.Event{
			{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: input}},
		}})
		if err != nil {
			return err
		}
		reply := goclaw.Text(goclaw.RoleAssistant, "Hello.")
		err = s.End(ctx, f, goclaw.Ending{State: goclaw.StateCompleted, Result: "Hello.", Batch: goclaw.Batch{
			Now: now, Usage: &goclaw.Usage{Input: 1000, Output: 2}, Events: []goclaw.Event{
				{Seq: 1, Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: reply, Stop: goclaw.StopEnd}},
				{Seq: 2, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: "Hello."}},
			},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}
