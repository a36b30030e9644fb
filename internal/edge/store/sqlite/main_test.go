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
		do := victim
		if os.Getenv("STORE_TEST_CRON") != "" {
			do = cronVictim
		}
		if os.Getenv("STORE_TEST_MIGRATE") != "" {
			do = migrationVictim
		}
		if err := do(path, os.Getenv("STORE_TEST_POINT"), os.Getenv("STORE_TEST_COUNT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// victim accepts, claims and ends runs, printing each write once it was
// answered, until the hook's count-th call at point kills it.
func victim(path, point, count string) error {
	ctx := context.Background()
	s, err := doomed(ctx, path, point, count)
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

// cronVictim fires a job's due times, one after the other, until it is killed.
func cronVictim(path, point, count string) error {
	ctx := context.Background()
	s, err := doomed(ctx, path, point, count)
	if err != nil {
		return err
	}
	for {
		due, err := fireDue(ctx, s)
		if err != nil {
			return err
		}
		fmt.Println(due)
	}
}

// fireDue fires the job j at its next due time, and returns that.
func fireDue(ctx context.Context, s *sqlite.Store) (goclaw.Millis, error) {
	jobs, _, err := s.DueCronJobs(ctx, 1000)
	if err != nil {
		return 0, err
	}
	if len(jobs) != 1 {
		return 0, fmt.Errorf("%d jobs are due", len(jobs))
	}
	j := jobs[0]
	_, _, err = s.FireCronJob(ctx, goclaw.CronFire{
		Job: j, Firing: goclaw.Firing{Job: j.ID, Due: j.Next, At: j.Next}, Next: j.Next + 1, Enabled: true,
		Run: &goclaw.Acceptance{Run: goclaw.Run{
			ID: fmt.Sprintf("run-%d", j.Next), Session: j.Key(), Trigger: goclaw.TriggerCron, State: goclaw.StateQueued, CreatedAt: 1,
		}},
	})
	return j.Next, err
}

// doomed opens a store that kills the process at the hook's count-th call at
// point.
func doomed(ctx context.Context, path, point, count string) (*sqlite.Store, error) {
	left, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqlite.Options{Hook: func(p string) {
		if p != point {
			return
		}
		if left--; left == 0 {
			_ = self.Kill()
			select {} // the signal may take a moment
		}
	}})
}

// migrationVictim migrates a database until it is killed.
func migrationVictim(path, point, count string) error {
	s, err := doomed(context.Background(), path, point, count)
	if err != nil {
		return err
	}
	return s.Close()
}
