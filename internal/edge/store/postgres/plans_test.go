package postgres_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

// crowd fills the tables with 2,000 rows of everything that is not what the
// test asks for.
const crowd = `
INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns)
	SELECT 'agent:a:api:user:' || kind || n, 'a', kind <> 'ended', 1, 1, 1
	FROM generate_series(1, 2000) AS n, unnest(ARRAY['ended', 'worker', 'queued', 'waiting', 'running']) AS kind;
INSERT INTO processes VALUES ('busy', 1000000);
INSERT INTO runs (id, session_key, trigger, requester_key, parent, depth, root, lane, agent, label, task, context, profile, cleanup, announce,
		state, finished_at, created_at, epoch, owner, waits_for, wake_at, idempotent, head)
	SELECT kind || n, 'agent:a:api:user:' || kind || n, CASE WHEN kind = 'ended' OR kind = 'running' AND n > 1 THEN 'user' ELSE 'spawn' END,
		CASE kind WHEN 'ended' THEN '' ELSE 'agent:a:main' END, CASE kind WHEN 'ended' THEN '' ELSE 'ended' || (n % 20) END,
		1, 'ended' || (n % 20), 'agent:a:main', 'a', '', '', '', '{}', '', 'together',
		CASE kind WHEN 'ended' THEN 'completed' WHEN 'worker' THEN 'completed' ELSE kind END,
		CASE WHEN kind IN ('ended', 'worker') THEN 5 END, 1, 1, CASE kind WHEN 'running' THEN 'busy' ELSE '' END,
		CASE kind WHEN 'waiting' THEN 'workers' ELSE '' END, CASE kind WHEN 'waiting' THEN 900000 END,
		CASE kind WHEN 'ended' THEN 'key' || n ELSE '' END, kind NOT IN ('ended', 'worker')
	FROM generate_series(1, 2000) AS n, unnest(ARRAY['ended', 'worker', 'queued', 'waiting', 'running']) AS kind;
INSERT INTO events SELECT id, seq, 'model', 1, '{}' FROM runs, generate_series(5, 7) AS seq;
INSERT INTO inbox (id, kind, session_key, source, group_run, mode, text, created_at, consumed_by, consumed_at, parked_at)
	SELECT kind || n, 'announcement', 'agent:a:api:user:' || kind || n, 'worker' || n, '', '', '', 1,
		CASE kind WHEN 'taken' THEN 'ended' || n ELSE '' END, CASE kind WHEN 'taken' THEN 5 END, CASE kind WHEN 'parked' THEN 5 END
	FROM generate_series(1, 2000) AS n, unnest(ARRAY['taken', 'parked', 'pending']) AS kind;
INSERT INTO outbox (id, session_key, run_id, text, state, next_at, created_at)
	SELECT 'o' || n, 'agent:a:api:user:ended' || n, 'ended' || n, '', 'sent', 1, 1 FROM generate_series(1, 2000) AS n;
INSERT INTO cron_jobs SELECT 'off' || n, 'a', 1, n > 1000, CASE WHEN n > 1000 THEN 900000 END, '{}' FROM generate_series(1, 2000) AS n;
INSERT INTO firings (job, due, at, manual, skipped, missed, run_id)
	SELECT 'j-life-' || (n % 10), n, 1, false, '', 0, 'ended' || n FROM generate_series(1000, 3000) AS n;
INSERT INTO blobs SELECT 'sum' || n, '' FROM generate_series(1, 2000) AS n;
INSERT INTO artifacts SELECT 'ended' || n, 'a', 'sum' || n, 0, '', 1 FROM generate_series(1, 2000) AS n;
INSERT INTO calls SELECT id, 0, root, 'b', '', '', '2026-01-02', 1, 1, 1, 0, 0, NULL, 0 FROM runs;
INSERT INTO holds SELECT id, 1, root, 'b', '2026-01-02', 1, 0, true, 1 FROM runs;`

// TestPlans prepares all statements of a run's life while the tables are empty,
// which is when the planner knows least, and counts what they read once the
// tables are full: it is what they need, not what there is.
func TestPlans(t *testing.T) {
	at := database(t)
	s, err := postgres.Open(t.Context(), at+"&pool_max_conns=1", postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for i := range 8 {
		life(t, s, fmt.Sprint("before-", i))
	}
	query(t, at, "DELETE FROM processes")
	for _, statement := range strings.Split(crowd, ";\n") {
		query(t, at, statement)
	}
	// What other connections read is counted when they have ended.
	for query(t, at, `SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database()
		AND backend_type = 'client backend' AND application_name <> 'goclaw' AND pid <> pg_backend_pid()`) != "0" {
		if t.Context().Err() != nil {
			t.Fatal("somebody else uses the database")
		}
	}
	query(t, at, "SELECT pg_stat_reset()::text")
	const lives = 10
	for i := range lives {
		life(t, s, fmt.Sprint("life-", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const most = 150 // rows of one table or index, for one life
	for _, counts := range []string{
		`SELECT coalesce(string_agg(relname || ' ' || seq_tup_read, ',' ORDER BY relname), '') FROM pg_stat_user_tables`,
		`SELECT coalesce(string_agg(indexrelname || ' ' || idx_tup_read, ',' ORDER BY indexrelname), '') FROM pg_stat_user_indexes`,
	} {
		for _, one := range strings.Split(query(t, at, counts), ",") {
			name, count, _ := strings.Cut(one, " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(err)
			}
			if n > lives*most {
				t.Errorf("%s: %d rows were read for a run, more than %d", name, n/lives, most)
			}
		}
	}
}

// life takes a parent and its worker through all that the engine asks of a
// store.
func life(t *testing.T, s *postgres.Store, id string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	accept := func(a goclaw.Acceptance) {
		t.Helper()
		_, _, err := s.Accept(ctx, a)
		must(err)
	}
	claim := func(want string) goclaw.Fence {
		t.Helper()
		claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "me", Now: 10, Lease: time.Second, Max: 1, MaxPerLane: 1})
		if err != nil || len(claimed) != 1 || claimed[0].Run.ID != want {
			t.Fatalf("claimed %v, error %v; want %s", claimed, err, want)
		}
		return claimed[0].Run.Fence()
	}
	parent := turn(id)
	accept(goclaw.Acceptance{Run: parent, Key: id, Coalesce: true})
	if _, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "me", Now: 10, Lease: time.Second, Max: 1, OnlyCancelled: true}); err != nil {
		t.Fatal(err)
	}
	f := claim(id)
	_, err := s.History(ctx, parent.Session, 0)
	must(err)
	_, err = s.Heartbeat(ctx, goclaw.Heartbeat{Owner: "me", Now: 10, Lease: time.Second})
	must(err)
	_, err = s.Asked(ctx, "me")
	must(err)
	limits := goclaw.Limits{Tokens: 1 << 40}
	_, err = s.Reserve(ctx, f, goclaw.Reservation{Tokens: 1, Tree: limits, Day: limits, Date: "2026-01-02", Now: 10})
	must(err)
	must(s.Append(ctx, f, goclaw.Batch{Now: 10, Day: "2026-01-02", Usage: &goclaw.Usage{Input: 1}, Events: []goclaw.Event{
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{}}}, Artifacts: []goclaw.ArtifactData{{Name: "b", Data: []byte(id)}}}))
	worker := turn(id + "-worker")
	worker.Trigger, worker.Parent, worker.Requester, worker.Root, worker.Announce = goclaw.TriggerSpawn, id, parent.Session, id, goclaw.AnnounceTogether
	accept(goclaw.Acceptance{Run: worker, Key: worker.ID, Blobs: []goclaw.Blob{content("spec")}, ParentFence: &f, MaxChildren: 5, MaxTreeRuns: 5})
	must(s.Suspend(ctx, f, goclaw.Suspension{For: goclaw.WaitWorkers, Batch: goclaw.Batch{Now: 10}}))
	w := claim(worker.ID)
	must(s.Post(ctx, worker.ID, goclaw.InboxItem{ID: "to-" + id, CreatedAt: 10}))
	must(s.Append(ctx, w, goclaw.Batch{Now: 10, Consume: []string{"to-" + id}}))
	must(s.End(ctx, w, goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 10}, Wake: &goclaw.Wake{Last: 10}, IfQuiet: true,
		Announce: &goclaw.InboxItem{ID: "of-" + id, Session: parent.Session, Source: worker.ID, Group: id}}))
	f = claim(id)
	_, err = s.Pending(ctx, parent.Session)
	must(err)
	must(s.Postpone(ctx, []string{"of-" + id}, goclaw.Return{NextAt: 10}, 10))
	must(s.Redirect(ctx, "of-"+id, parent.Session))
	must(s.End(ctx, f, goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 10, Consume: []string{"of-" + id}, Artifacts: []goclaw.ArtifactData{{Name: "a"}}}, Return: &goclaw.Return{NextAt: 10},
		Outbox: &goclaw.Outbound{ID: "reply-" + id, Session: parent.Session, Run: id}}))
	if taken, err := s.TakeOutbox(ctx, "reply-"+id, 10, 10); err != nil || !taken {
		t.Fatalf("taken %v, error %v", taken, err)
	}
	must(s.MarkOutbox(ctx, "reply-"+id, "sent", 10, ""))
	_, err = s.Outbox(ctx, 10, 9)
	must(err)
	_, err = s.Run(ctx, id)
	must(err)
	_, err = s.Events(ctx, id)
	must(err)
	_, err = s.Runs(ctx, goclaw.RunFilter{Requester: parent.Session, Active: true, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	must(err)
	_, err = s.Runs(ctx, goclaw.RunFilter{Parent: id})
	must(err)
	_, err = s.Runs(ctx, goclaw.RunFilter{Limit: 10})
	must(err)
	_, err = s.Session(ctx, parent.Session)
	must(err)
	for _, left := range []goclaw.ArtifactFilter{{Run: id}, {Run: id, Name: "a"}, {Session: parent.Session, Limit: 9}, {Root: id, Name: "a"}} {
		_, err = s.ArtifactsOf(ctx, left)
		must(err)
	}
	must(s.ChangeSession(ctx, parent.Session, goclaw.SessionChange{Reset: true}, 10))
	_, err = s.Cancel(ctx, goclaw.Cancellation{Run: id, Now: 10, Cascade: true})
	must(err)
	_, err = s.Runs(ctx, goclaw.RunFilter{Root: id})
	must(err)
	j, err := s.PutCronJob(ctx, goclaw.CronJob{ID: "j-" + id, Agent: "a", Enabled: true, Next: 1})
	must(err)
	due, _, err := s.DueCronJobs(ctx, 10)
	must(err)
	if len(due) != 1 {
		t.Fatalf("due: %v", due)
	}
	fire := firing(j, "cron-"+id)
	fire.Next, fire.IfQuiet, fire.Alone, fire.MaxActive = 900_000, true, true, 9
	_, _, err = s.FireCronJob(ctx, fire)
	must(err)
	_, err = s.Firings(ctx, j.ID, 5)
	must(err)
	must(s.End(ctx, claim("cron-"+id), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 10}}))
}
