package engine_test

import (
	"testing"

	"goclaw"
)

func TestCompactIsAccepted(t *testing.T) {
	r := newRig(t, rigOptions{})
	ctx, key := t.Context(), goclaw.MainKey("main")
	first, err := r.engine.Compact(ctx, key, " keep the names ", "k")
	if err != nil {
		t.Fatal(err)
	}
	if first.Trigger != goclaw.TriggerCompact || first.Session != key || first.Task != "keep the names" ||
		first.State != goclaw.StateQueued || first.Profile.Model != "fake/big" {
		t.Errorf("accepted %+v", first)
	}
	again, err := r.engine.Compact(ctx, key, "keep the names", "k")
	if err != nil || again.ID != first.ID {
		t.Errorf("the same key gave %s, then %s, %v", first.ID, again.ID, err)
	}
	for range 2 {
		other, err := r.engine.Compact(ctx, key, "", "")
		if err != nil || other.ID == first.ID {
			t.Errorf("without a key: %s, %v", other.ID, err)
		}
	}
	if _, err := r.engine.Compact(ctx, goclaw.SubagentKey("main", "1"), "", ""); !goclaw.IsBadRequest(err) {
		t.Errorf("a worker's session: %v", err)
	}
	if _, err := r.engine.Compact(ctx, goclaw.MainKey("gone"), "", ""); err == nil {
		t.Error("an agent that is not there was compacted")
	}
}
