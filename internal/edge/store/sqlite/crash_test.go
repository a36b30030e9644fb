package sqlite_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
)

// TestKill kills a process right before and right after a commit: what was
// answered is there, and of the write that was not answered all or nothing.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	states := []goclaw.RunState{goclaw.StateQueued, goclaw.StateRunning, goclaw.StateCompleted}
	for _, point := range []string{"commit.before", "commit.after"} {
		for count := 1; count <= 6; count++ {
			t.Run(fmt.Sprintf("%s %d", point, count), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "goclaw.db")
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env = append(os.Environ(), "STORE_TEST_VICTIM="+path, "STORE_TEST_POINT="+point, fmt.Sprintf("STORE_TEST_COUNT=%d", count))
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				if err == nil || cmd.ProcessState.ExitCode() == 1 {
					t.Fatalf("the victim ended by itself: %v", err)
				}
				if answered := strings.Count(string(out), "\n"); answered != count-1 {
					t.Fatalf("%d writes were answered, want %d:\n%s", answered, count-1, out)
				}
				written := count
				if point == "commit.before" {
					written--
				}
				s := open(t, path, sqlite.Options{})
				for n := 1; n <= (count+2)/3; n++ {
					id := fmt.Sprintf("run-%d", n)
					done := min(written-3*(n-1), 3)
					run, err := s.Run(t.Context(), id)
					if done <= 0 {
						if err == nil {
							t.Errorf("%s is there, though it was not committed", id)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if run.State != states[done-1] {
						t.Errorf("%s is %s, want %s", id, run.State, states[done-1])
					}
					events, err := s.Events(t.Context(), id)
					if err != nil || (len(events) == 1) != (done == 3) {
						t.Errorf("%s, %s: %d events, error %v", id, run.State, len(events), err)
					}
				}
			})
		}
	}
}

// TestKillFiring kills a process again and again while it fires a job: every
// due time was decided once, each with its run, and none was left out.
func TestKillFiring(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s := open(t, path, sqlite.Options{})
	if _, err := s.PutCronJob(t.Context(), goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fired := 0
	for i := range 12 {
		point, count := []string{"commit.before", "commit.after"}[i%2], 1+i%3
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "STORE_TEST_CRON=1", "STORE_TEST_VICTIM="+path, "STORE_TEST_POINT="+point, fmt.Sprintf("STORE_TEST_COUNT=%d", count))
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() == 1 {
			t.Fatalf("the victim ended by itself: %v", err)
		}
		fired += count
		if point == "commit.before" {
			fired--
		}
	}
	s = open(t, path, sqlite.Options{})
	due, err := fireDue(t.Context(), s)
	if err != nil || int(due) != fired+1 {
		t.Fatalf("next due was %d, want %d; error %v", due, fired+1, err)
	}
	firings, err := s.Firings(t.Context(), "j", 0)
	if err != nil || len(firings) != fired+1 {
		t.Fatalf("%d firings, want %d; error %v", len(firings), fired+1, err)
	}
	for i, f := range firings {
		if want := fired + 1 - i; int(f.Due) != want || f.Run != fmt.Sprintf("run-%d", want) || f.State != goclaw.StateQueued {
			t.Errorf("firing %d: %+v", want, f)
		}
	}
	runs, err := s.Runs(t.Context(), goclaw.RunFilter{})
	if err != nil || len(runs) != fired+1 {
		t.Errorf("%d runs, want %d; error %v", len(runs), fired+1, err)
	}
}

// TestDrop opens what the disk holds while a store is still open, as after a
// kill.
func TestDrop(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "goclaw.db"), sqlite.Options{})
	accept(t, s, "r1")
	claimed, err := s.Claim(t.Context(), goclaw.ClaimRequest{Owner: "dead", Now: 1, Lease: 1e12, Max: 1})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d, error %v", len(claimed), err)
	}
	fence := claimed[0].Run.Fence()
	if err := s.Append(t.Context(), fence, goclaw.Batch{Now: 2, Events: []goclaw.Event{{Kind: goclaw.EventPrompt}}}); err != nil {
		t.Fatal(err)
	}

	left := t.TempDir()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, "-shm") { // memory, not disk
			copyFile(t, f, filepath.Join(left, filepath.Base(f)))
		}
	}
	again := open(t, filepath.Join(left, "goclaw.db"), sqlite.Options{})
	claimed, err = again.Claim(t.Context(), goclaw.ClaimRequest{Owner: "heir", Now: 3, Lease: 1e12, Max: 1, DeadOwners: true})
	if err != nil || len(claimed) != 1 || !claimed[0].TakeOver {
		t.Fatalf("claimed %+v, error %v", claimed, err)
	}
	events, err := again.Events(t.Context(), "r1")
	if err != nil || len(events) != 1 || events[0].At != 2 {
		t.Fatalf("events %+v, error %v", events, err)
	}
}

func accept(t *testing.T, s *sqlite.Store, id string) {
	t.Helper()
	if _, _, err := s.Accept(t.Context(), turn(id)); err != nil {
		t.Fatal(err)
	}
}

// turn is a user's turn in a session of its own.
func turn(id string) goclaw.Acceptance {
	return goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: goclaw.APIKey("a", id), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: 1,
	}}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
