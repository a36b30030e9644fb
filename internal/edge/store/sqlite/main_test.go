package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// TestMain is also the program that TestKill ends in the middle of a commit.
func TestMain(m *testing.M) {
	if path := os.Getenv("STORE_TEST_VICTIM"); path != "" {
		if err := victim(path, os.Getenv("STORE_TEST_POINT"), os.Getenv("STORE_TEST_COUNT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// victim accepts, claims and ends runs, printing each write once it was
// answered, until the hook's count-th call at point kills it.
func victim(path, point, count string) error {
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{Hook: func(p string) {
		if p != point {
			return
		}
		if left--; left == 0 {
			_ = self.Kill()
			select {} // the signal may take a moment
		}
	}})
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		id := fmt.Sprintf("run-%d", n)
		_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
			ID: id, Session: goclaw.MainKey("a"), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: 1,
		}})
		if err != nil {
			return err
		}
		fmt.Println(id, goclaw.StateQueued)
		claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: 1e9, Max: 1})
		if err != nil {
			return err
		}
		fmt.Println(id, goclaw.StateRunning)
		fence := claimed[0].Run.Fence()
		err = s.End(ctx, fence, goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 2, Events: []goclaw.Event{{Kind: goclaw.EventEnd}}}})
		if err != nil {
			return err
		}
		fmt.Println(id, goclaw.StateCompleted)
	}
}
