package storetest

import (
	"goclaw"
)

func testAcceptFields(w *world) {
	key := goclaw.SessionKey{Agent: "a1", Kind: goclaw.KindChannel, Channel: "telegram", PeerKind: "direct", Peer: "x:y z%", Thread: "7"}
	want := goclaw.Run{
		ID: "0198-full", Session: key, Trigger: goclaw.TriggerSpawn, Requester: goclaw.MainKey("a1"), Parent: "p", Depth: 2,
		Root: "top", Lane: goclaw.APIKey("a1", "me"),
		Label: "né\x00w", Task: "line\nline 'quoted' \"too\" 😀", Context: "\xff is no UTF-8",
		Profile: goclaw.Profile{
			Agent: "a1", Workspace: "/w", Model: "p/m", Thinking: "low", Tools: []string{"exec", "read"}, PromptMode: goclaw.PromptMinimal,
			Inherit: []string{}, Strict: true, TimeoutMs: 5, MaxSpawnDepth: 1, MaxChildren: 2, Definition: "d", DefinitionSHA: "abc",
		},
		Cleanup: goclaw.CleanupDelete, Announce: goclaw.AnnounceEach,
		State: goclaw.StateQueued, CreatedAt: start + 1, Idempotent: "k1",
	}
	given := want
	given.Idempotent = ""
	given.Ordinal, given.Epoch, given.Owner, given.StartedAt, given.CancelAt, given.Result = 99, 3, "nobody", 5, 6, "none yet"
	given.Recovery, given.WaitsFor, given.WakeAt = &goclaw.Recovery{Times: 1}, goclaw.WaitPerson, 7
	got := w.accept(goclaw.Acceptance{Run: given, Key: "k1"})
	want.Ordinal = 1
	w.same("accepted", got, want)
	w.same("stored", w.find(want.ID), want)
}

func testAcceptSession(w *world) {
	ctx := w.Context()
	_, err := w.Session(ctx, goclaw.MainKey("a"))
	w.fails("Session before any run", err, goclaw.ErrNotFound)
	w.accept(w.turn("r1", "a"))
	w.now += 10
	second := w.accept(w.turn("r2", "a"))
	if second.Ordinal != 2 {
		w.Fatalf("ordinal %d, want 2", second.Ordinal)
	}
	got, err := w.Session(ctx, goclaw.MainKey("a"))
	w.ok(err)
	w.same("session", got, goclaw.Session{Key: goclaw.MainKey("a"), Agent: "a", CreatedAt: start, UpdatedAt: start + 10, Turns: 2})
}

func testAcceptRefuses(w *world) {
	w.accept(w.turn("r1", "a"))
	tests := map[string]func(*goclaw.Run){
		"an id that is taken":   func(r *goclaw.Run) { r.ID = "r1" },
		"no id":                 func(r *goclaw.Run) { r.ID = "" },
		"a running run":         func(r *goclaw.Run) { r.State = goclaw.StateRunning },
		"no session":            func(r *goclaw.Run) { r.Session = goclaw.SessionKey{} },
		"a session in disguise": func(r *goclaw.Run) { r.Session = goclaw.SessionKey{Agent: "a", Kind: goclaw.KindMain, Peer: "p"} },
		"a bad requester":       func(r *goclaw.Run) { r.Requester = goclaw.MainKey("Not An Id") },
		"a bad lane":            func(r *goclaw.Run) { r.Lane = goclaw.MainKey("Not An Id") },
	}
	for what, change := range tests {
		a := w.turn("r2", "b")
		change(&a.Run)
		_, _, err := w.Accept(w.Context(), a)
		w.refused(what, err)
	}
	_, err := w.Session(w.Context(), goclaw.MainKey("b"))
	w.fails("the session of refused runs", err, goclaw.ErrNotFound)
}

func testAcceptKey(w *world) {
	first := w.turn("r1", "a")
	first.Key = "key"
	run := w.accept(first)
	w.end(w.claims(w.request("o", 1), "r1")[0].Run)
	again := w.turn("r2", "b")
	again.Key = "key"
	got, created, err := w.Accept(w.Context(), again)
	w.ok(err)
	if created || got.ID != run.ID || got.State != goclaw.StateCompleted {
		w.Fatalf("got run %s (%s), created %v; want the first", got.ID, got.State, created)
	}
	other := w.turn("r3", "a")
	other.Key = "other"
	w.accept(other)
	w.accept(w.turn("r4", "a"))
	w.accept(w.turn("r5", "a"))
}

func testAcceptCoalesce(w *world) {
	wake := func(id string) goclaw.Acceptance {
		a := w.turn(id, "a")
		a.Run.Trigger, a.Coalesce = goclaw.TriggerAnnouncement, true
		return a
	}
	w.accept(w.turn("user", "a"))
	w.accept(wake("w1"))
	got, created, err := w.Accept(w.Context(), wake("w2"))
	w.ok(err)
	if created || got.ID != "w1" {
		w.Fatalf("got run %s, created %v; want w1", got.ID, created)
	}
	plain := wake("w3")
	plain.Coalesce = false
	w.accept(plain)
	other := wake("w4")
	other.Run.Session = goclaw.MainKey("b")
	w.accept(other)

	// A wake that was withdrawn no longer stands for a new one. One that was
	// claimed still does until it has recorded its first event: until then it
	// takes what is new.
	_, err = w.Cancel(w.Context(), goclaw.Cancellation{Run: "w3", Now: w.now})
	w.ok(err)
	w.end(w.claims(w.request("o", 2), "w3", "user")[1].Run)
	w.end(w.find("w3"))
	claimed := w.claims(w.request("o", 1), "w1")[0].Run
	got, created, err = w.Accept(w.Context(), wake("w5"))
	w.ok(err)
	if created || got.ID != "w1" {
		w.Fatalf("got run %s, created %v; want w1", got.ID, created)
	}
	w.ok(w.Append(w.Context(), claimed.Fence(), goclaw.Batch{
		Events: []goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{}}}, Now: w.now,
	}))
	w.accept(wake("w6"))
}

func testAcceptFence(w *world) {
	parent := w.begin(w.turn("parent", "a"), "o1")
	fence := parent.Fence()
	child := w.spawn("c1", parent)
	child.ParentFence = &fence
	w.accept(child)

	stale := []goclaw.Fence{
		{Run: "parent", Epoch: fence.Epoch + 1, Owner: "o1"},
		{Run: "parent", Epoch: fence.Epoch, Owner: "o2"},
		{Run: "nobody", Epoch: 1, Owner: "o1"},
		{Run: "c1", Epoch: 0, Owner: ""},
	}
	for i, f := range stale {
		a := w.spawn("c2", parent)
		a.ParentFence = &f
		_, _, err := w.Accept(w.Context(), a)
		w.fails([]string{"epoch", "owner", "run", "queued parent"}[i], err, goclaw.ErrFenced)
	}
	w.end(parent)
	a := w.spawn("c2", parent)
	a.ParentFence = &fence
	_, _, err := w.Accept(w.Context(), a)
	w.fails("ended parent", err, goclaw.ErrFenced)
	_, err = w.Session(w.Context(), a.Run.Session)
	w.fails("session of a refused child", err, goclaw.ErrNotFound)
}

func testAcceptChildren(w *world) {
	parent := w.begin(w.turn("parent", "a"), "o")
	spawn := func(id string) error {
		a := w.spawn(id, parent)
		a.MaxChildren = 2
		_, _, err := w.Accept(w.Context(), a)
		return err
	}
	w.ok(spawn("c1"))
	w.ok(spawn("c2"))
	w.fails("third child", spawn("c3"), goclaw.ErrTooManyChildren)
	// Neither its own turns nor another's children count.
	other := w.begin(w.turn("other", "b"), "o")
	w.accept(w.spawn("x1", other))
	w.fails("third child", spawn("c3"), goclaw.ErrTooManyChildren)
	w.end(w.find("c1"))
	w.ok(spawn("c3"))
}

func testCancel(w *world) {
	ctx := w.Context()
	_, err := w.Cancel(ctx, goclaw.Cancellation{Run: "none", Now: w.now})
	w.fails("Cancel of nothing", err, goclaw.ErrNotFound)
	w.accept(w.turn("r1", "a"))
	marked, err := w.Cancel(ctx, goclaw.Cancellation{Run: "r1", Why: "enough", Now: w.now + 5})
	w.ok(err)
	w.same("marked", ids(marked), []string{"r1"})
	if r := marked[0]; r.CancelAt != w.now+5 || r.CancelWhy != "enough" || r.State != goclaw.StateQueued {
		w.Fatalf("marked run: %+v", r)
	}
	w.same("stored", w.find("r1"), marked[0])
	again, err := w.Cancel(ctx, goclaw.Cancellation{Run: "r1", Why: "again", Now: w.now + 6})
	w.ok(err)
	w.same("marked again", ids(again), []string(nil))
	w.same("stored", w.find("r1"), marked[0])
	w.end(w.claims(w.request("o", 1), "r1")[0].Run)
	ended := w.begin(w.turn("r2", "a"), "o")
	w.end(ended)
	none, err := w.Cancel(ctx, goclaw.Cancellation{Run: "r2", Now: w.now})
	w.ok(err)
	w.same("marked after the end", ids(none), []string(nil))
}

func testCancelCascade(w *world) {
	root := w.begin(w.turn("root", "a"), "o")
	c1 := w.accept(w.spawn("c1", root))
	c2 := w.accept(w.spawn("c2", root))
	w.claims(w.request("o", 9), "c1", "c2")
	w.accept(w.spawn("c11", c1))
	w.accept(w.spawn("c21", c2))
	w.accept(w.turn("stranger", "b"))
	w.end(w.find("c2")) // its child is reached all the same

	marked, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: "c1", Now: w.now})
	w.ok(err)
	w.same("without cascade", ids(marked), []string{"c1"})
	marked, err = w.Cancel(w.Context(), goclaw.Cancellation{Run: "root", Now: w.now, Cascade: true})
	w.ok(err)
	w.same("with cascade", ids(marked), []string{"root", "c11", "c21"})
	if r := w.find("stranger"); r.CancelAt != 0 {
		w.Fatal("a stranger was cancelled")
	}
}
