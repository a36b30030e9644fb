package storetest

import (
	"fmt"
	"slices"

	"goclaw"
)

// leaving is a batch with n events that leaves artifacts, given as name and
// content in turn.
func (w *world) leaving(seq, n int, pairs ...string) goclaw.Batch {
	b := w.batch(seq, n)
	for pair := range slices.Chunk(pairs, 2) {
		b.Artifacts = append(b.Artifacts, goclaw.ArtifactData{Name: pair[0], MediaType: "text/plain", Data: []byte(pair[1])})
	}
	return b
}

func artifact(run, name, text string, at goclaw.Millis) goclaw.Artifact {
	return goclaw.Artifact{Run: run, Name: name, SHA256: blob(text).SHA256, Size: int64(len(text)), MediaType: "text/plain", CreatedAt: at}
}

func (w *world) left(f goclaw.ArtifactFilter, want ...goclaw.Artifact) {
	w.Helper()
	got, err := w.ArtifactsOf(w.Context(), f)
	w.ok(err)
	w.same(fmt.Sprintf("artifacts of %+v", f), got, want)
}

func (w *world) content(text string) {
	w.Helper()
	data, err := w.Blob(w.Context(), blob(text).SHA256)
	w.ok(err)
	w.same("content", string(data), text)
}

func (w *world) noContent(text string) {
	w.Helper()
	_, err := w.Blob(w.Context(), blob(text).SHA256)
	w.fails("content of what was refused", err, goclaw.ErrNotFound)
}

// testArtifacts: a batch stores artifacts with its events, or neither.
func testArtifacts(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	w.ok(w.Append(ctx, run.Fence(), w.leaving(0, 1, "b.md", "one", "dir/a.md", "two\x00\xff")))
	w.left(goclaw.ArtifactFilter{Run: "r"}, artifact("r", "b.md", "one", start), artifact("r", "dir/a.md", "two\x00\xff", start))
	w.content("two\x00\xff")
	w.now++
	w.ok(w.Append(ctx, run.Fence(), w.leaving(1, 1, "b.md", "four", "b.md", "three")))
	w.ok(w.Append(ctx, run.Fence(), w.leaving(2, 0, "c.md", "one")))
	all := []goclaw.Artifact{artifact("r", "b.md", "three", start+1), artifact("r", "c.md", "one", start+1), artifact("r", "dir/a.md", "two\x00\xff", start)}
	w.left(goclaw.ArtifactFilter{Run: "r"}, all...)
	w.content("one") // c.md is it now

	stale := run.Fence()
	stale.Epoch = 9
	w.fails("a stale fence", w.Append(ctx, stale, w.leaving(2, 1, "d.md", "refused")), goclaw.ErrFenced)
	w.refused("a gap", w.Append(ctx, run.Fence(), w.leaving(3, 1, "d.md", "refused")))
	w.refused("no name", w.Append(ctx, run.Fence(), w.leaving(2, 1, "d.md", "refused", "", "x")))
	gone := w.leaving(2, 1, "b.md", "refused")
	gone.Consume = []string{"none"}
	w.refused("an item that is not there", w.Append(ctx, run.Fence(), gone))
	w.noContent("refused")
	w.left(goclaw.ArtifactFilter{}, all...)
	w.same("events", len(w.events("r")), 2)
}

func testEndArtifacts(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	end := func(f goclaw.Fence, pairs ...string) error {
		return w.End(ctx, f, goclaw.Ending{State: goclaw.StateCompleted, Batch: w.leaving(0, 1, pairs...)})
	}
	stale := run.Fence()
	stale.Epoch = 9
	w.fails("a stale fence", end(stale, "result.md", "all of it"), goclaw.ErrFenced)
	w.refused("an artifact without a name", end(run.Fence(), "result.md", "all of it", "", ""))
	w.noContent("all of it")
	w.ok(end(run.Fence(), "result.md", "all of it", "empty", ""))
	w.left(goclaw.ArtifactFilter{Run: "r"}, artifact("r", "empty", "", w.now), artifact("r", "result.md", "all of it", w.now))
	w.content("all of it")
	w.content("")
	w.fails("after the end", w.Append(ctx, run.Fence(), w.leaving(1, 0, "late", "late")), goclaw.ErrFenced)
	w.noContent("late")
}

func testSuspendArtifacts(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	suspend := func(reason goclaw.WaitReason, seen int, pairs ...string) error {
		return w.Suspend(ctx, run.Fence(), goclaw.Suspension{For: reason, Seen: seen, Batch: w.leaving(0, 1, pairs...)})
	}
	w.fails("what came for it", suspend(goclaw.WaitPerson, 1, "state.md", "half"), goclaw.ErrWoken)
	w.refused("no name", suspend(goclaw.WaitPerson, 0, "state.md", "half", "", ""))
	w.noContent("half")
	w.left(goclaw.ArtifactFilter{})
	w.ok(suspend(goclaw.WaitPerson, 0, "state.md", "half"))
	w.left(goclaw.ArtifactFilter{Run: "r"}, artifact("r", "state.md", "half", w.now))
	w.content("half")
}

// testArtifactsOf asks in every way, newest first.
func testArtifactsOf(w *world) {
	ctx := w.Context()
	leave := func(r goclaw.Run, name string) goclaw.Artifact {
		w.Helper()
		w.now++
		text := r.ID + name
		w.ok(w.Append(ctx, r.Fence(), w.leaving(0, 0, name, text)))
		return artifact(r.ID, name, text, w.now)
	}
	turn := w.begin(w.turn("turn", "a"), "o")
	spawned := func(id string, parent goclaw.Run) goclaw.Run {
		a := w.spawn(id, parent)
		a.Run.Root = "turn"
		return w.begin(a, "o")
	}
	one := spawned("one", turn)
	inner := spawned("inner", one)
	other := w.begin(w.turn("other", "b"), "o")
	plan, found, deep, own, foreign := leave(turn, "PLAN.md"), leave(one, "FOUND.md"), leave(inner, "PLAN.md"), leave(one, "PLAN.md"), leave(other, "PLAN.md")

	w.left(goclaw.ArtifactFilter{}, foreign, own, deep, found, plan)
	w.left(goclaw.ArtifactFilter{Limit: 2}, foreign, own)
	w.left(goclaw.ArtifactFilter{Run: "one"}, own, found)
	w.left(goclaw.ArtifactFilter{Run: "one", Name: "FOUND.md"}, found)
	w.left(goclaw.ArtifactFilter{Root: "turn"}, own, deep, found)
	w.left(goclaw.ArtifactFilter{Root: "turn", Name: "PLAN.md", Limit: 1}, own)
	w.left(goclaw.ArtifactFilter{Session: turn.Session}, own, found, plan)
	w.left(goclaw.ArtifactFilter{Session: one.Session}, own, deep, found)
	w.left(goclaw.ArtifactFilter{Session: one.Session, Run: "inner"}, deep)
	w.left(goclaw.ArtifactFilter{Session: other.Session, Name: "FOUND.md"})
	w.left(goclaw.ArtifactFilter{Run: "on"})

	// At the same time: by the runs' order, then by name.
	for _, r := range []goclaw.Run{one, turn} {
		w.ok(w.Append(ctx, r.Fence(), w.leaving(0, 0, "z", "same", "y", "same")))
	}
	at := func(run, name string) goclaw.Artifact { return artifact(run, name, "same", w.now) }
	w.left(goclaw.ArtifactFilter{Session: turn.Session, Limit: 3}, at("one", "y"), at("one", "z"), at("turn", "y"))
}

// testAcceptBlobs: an acceptance stores content with the run, or neither.
func testAcceptBlobs(w *world) {
	ctx := w.Context()
	with := func(id, key string, blobs ...goclaw.Blob) goclaw.Acceptance {
		a := w.turn(id, id)
		a.Key, a.Blobs = key, blobs
		return a
	}
	run := w.accept(with("r1", "key", blob("spec"), blob("spec"), blob("")))
	w.content("spec")
	w.content("")
	w.accept(with("r2", "", blob("spec")))

	if got, created, err := w.Accept(ctx, with("r3", "key", blob("again"))); err != nil || created || got.ID != run.ID {
		w.Fatalf("got %s, created %v, error %v; want the first", got.ID, created, err)
	}
	w.noContent("again")
	_, _, err := w.Accept(ctx, with("r4", "", blob("again"), goclaw.Blob{SHA256: blob("x").SHA256, Data: []byte("y")}))
	w.refused("a wrong hash", err)
	stale := with("r5", "", blob("again"))
	stale.ParentFence = &goclaw.Fence{Run: "r1", Epoch: 3, Owner: "o"}
	_, _, err = w.Accept(ctx, stale)
	w.fails("a stale fence", err, goclaw.ErrFenced)
	_, _, err = w.Accept(ctx, with("r1", "", blob("again")))
	w.refused("a run that is there", err)
	w.noContent("again")
}
