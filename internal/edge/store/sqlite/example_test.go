package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// A run's life: accepted, claimed, recorded, ended.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(ctx, filepath.Join(dir, "goclaw.db"), sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	now := goclaw.Millis(1)
	_, _, err = s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
		ID: "0198f2c4", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser,
		Task: "hello", State: goclaw.StateQueued, CreatedAt: now,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "process 1", Now: now, Lease: 15 * time.Second, Max: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = s.End(ctx, claimed[0].Run.Fence(), goclaw.Ending{
		Batch: goclaw.Batch{Now: now, Events: []goclaw.Event{{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted}}}},
		State: goclaw.StateCompleted, Result: "hi",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := s.Run(ctx, "0198")
	fmt.Println(run.ID, run.State, run.Result, err)
	fmt.Println(s.Commits(), "commits")
	// Output:
	// 0198f2c4 completed hi <nil>
	// 3 commits
}
