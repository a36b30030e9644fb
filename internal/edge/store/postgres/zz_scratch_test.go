package postgres_test

import (
	"fmt"
	"os"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
)

func TestScratchPlans(t *testing.T) {
	dir := "/tmp/postgres-scratch"
	os.RemoveAll(dir)
	os.MkdirAll(dir, 0o755)
	s, err := pgtest.Start(t.Context(), dir, "fsync=off", "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=2ms", "auto_explain.log_analyze=on", "auto_explain.log_buffers=on")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	st, err := postgres.Open(t.Context(), s.URL("postgres"), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	accept := func(n int, lane string) {
		id := fmt.Sprintf("%012d-queued", n)
		_, _, err := st.Accept(t.Context(), goclaw.Acceptance{Run: goclaw.Run{
			ID: id, Session: goclaw.SubagentKey("a", id), Trigger: goclaw.TriggerSpawn, Lane: goclaw.APIKey("a", lane),
			State: goclaw.StateQueued, CreatedAt: 1,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10_000 {
		accept(n, "many")
	}
	for lane := range 100 {
		accept(10_000+lane, fmt.Sprint(lane))
	}
	os.Truncate(dir+"/log", 0)
	for n := 11_000; n < 11_050; n++ {
		claimed, err := st.Claim(t.Context(), goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: 1e10, Max: 64, MaxWorkers: 4})
		if err != nil || len(claimed) == 0 {
			t.Fatalf("claimed %d runs: %v", len(claimed), err)
		}
		run := claimed[0].Run
		if err = st.End(t.Context(), run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 1}}); err != nil {
			t.Fatal(err)
		}
		accept(n, run.Lane.Peer)
	}
	out, _ := os.ReadFile(dir + "/log")
	os.WriteFile("/tmp/postgres-plans.txt", out, 0o644)
}
