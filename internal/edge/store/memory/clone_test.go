package memory_test

import (
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/store/storetest"
)

// unclosed is a store that outlives Close, so that it can be cloned then.
type unclosed struct{ *memory.Store }

func (unclosed) Close() error { return nil }

// TestClone goes on with a clone again and again while a model lives through
// the same: nothing is missing from any, and what happens to a clone leaves
// what it was made of alone.
func TestClone(t *testing.T) {
	storetest.Agree(t, func() (storetest.Pair, error) {
		now := memory.Open()
		var before *memory.Store
		var fingerprint string
		check := func() {
			if before != nil && before.Fingerprint() != fingerprint {
				t.Error("a store changed with its clone")
			}
		}
		return storetest.Pair{Model: memory.Open(), Subject: unclosed{now}, Remove: check, Reopen: func() (storetest.Store, error) {
			check()
			before, now = now, now.Clone()
			fingerprint = before.Fingerprint()
			if now.Fingerprint() != fingerprint {
				t.Error("a clone has another fingerprint")
			}
			return unclosed{now}, nil
		}}, nil
	})
}

// TestFingerprint changes a store in every way that can be told apart later.
func TestFingerprint(t *testing.T) {
	ctx := t.Context()
	s := memory.Open()
	seen := map[string]string{s.Fingerprint(): "nothing"}
	var fence goclaw.Fence
	steps := []struct {
		what string
		do   func() error
	}{
		{"accept", func() error {
			_, _, err := s.Accept(ctx, goclaw.Acceptance{Key: "k", Run: goclaw.Run{ID: "r", Session: goclaw.MainKey("a"), State: goclaw.StateQueued}})
			return err
		}},
		{"claim", func() error {
			claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: 1e9, Max: 1})
			fence = claimed[0].Run.Fence()
			return err
		}},
		{"heartbeat", func() error {
			_, err := s.Heartbeat(ctx, goclaw.Heartbeat{Owner: "o", Now: 2, Lease: 1e9})
			return err
		}},
		{"reserve", func() error {
			_, err := s.Reserve(ctx, fence, goclaw.Reservation{Tokens: 5})
			return err
		}},
		{"lose", func() error {
			_, err := s.Reserve(ctx, fence, goclaw.Reservation{Tokens: 5, Spent: true})
			return err
		}},
		{"append", func() error {
			return s.Append(ctx, fence, goclaw.Batch{Events: []goclaw.Event{{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{}}}})
		}},
		{"artifact", func() error {
			return s.Append(ctx, fence, goclaw.Batch{Artifacts: []goclaw.ArtifactData{{Name: "n", Data: []byte("x")}}, Now: 1})
		}},
		{"post", func() error { return s.Post(ctx, "r", goclaw.InboxItem{ID: "i", CreatedAt: 1}) }},
		{"rate", func() error {
			_, err := s.TakeRate(ctx, goclaw.RateRequest{Name: "p", RequestsPerMinute: 1, Now: 1})
			return err
		}},
		{"pause", func() error { return s.SetPause(ctx, goclaw.Pause{At: 1}) }},
		{"suspend", func() error { return s.Suspend(ctx, fence, goclaw.Suspension{For: goclaw.WaitPerson, Seen: 1}) }},
		{"resume", func() error {
			_, err := s.Resume(ctx, "r", 3)
			return err
		}},
		{"claim again", func() error {
			claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 3, Lease: 1e9, Max: 1})
			fence = claimed[0].Run.Fence()
			return err
		}},
		{"end", func() error {
			return s.End(ctx, fence, goclaw.Ending{State: goclaw.StateFailed, Batch: goclaw.Batch{Now: 4},
				Outbox: &goclaw.Outbound{ID: "o", Session: goclaw.MainKey("a"), Run: "r"}})
		}},
		{"park", func() error { return s.MarkOutbox(ctx, "o", "parked", 5, "") }},
		{"cron job", func() error {
			_, err := s.PutCronJob(ctx, goclaw.CronJob{ID: "j", Agent: "a"})
			return err
		}},
		{"fire", func() error {
			_, _, err := s.FireCronJob(ctx, goclaw.CronFire{Job: goclaw.CronJob{ID: "j", Revision: 1}, Firing: goclaw.Firing{Job: "j", Due: 1, Skipped: "why"}})
			return err
		}},
		{"remove", func() error { return s.RemoveCronJob(ctx, "j") }},
		{"close", s.Close},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		fingerprint := s.Fingerprint()
		if other, known := seen[fingerprint]; known {
			t.Errorf("after %q the fingerprint is as after %q", step.what, other)
		}
		seen[fingerprint] = step.what
		if twin := s.Clone().Fingerprint(); twin != fingerprint {
			t.Errorf("after %q a clone has another fingerprint", step.what)
		}
	}
}
