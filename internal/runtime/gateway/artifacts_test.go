package gateway_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func TestArtifacts(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	run, err := d.runner.accept(ctx, goclaw.Run{Session: goclaw.SubagentKey("main", "w"), Trigger: goclaw.TriggerSpawn, Requester: mainKey, Label: "digger"}, "")
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := d.store.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: time.Hour, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = d.store.Append(ctx, claimed[0].Run.Fence(), goclaw.Batch{Now: 1, Artifacts: []goclaw.ArtifactData{{Name: "a/FOUND.md", MediaType: "text/markdown", Data: []byte("gold")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []goclaw.ArtifactFilter{{}, {Run: run.ID}, {Run: run.ID[:5]}, {Session: mainKey}} {
		found, err := d.Artifacts(ctx, f)
		if err != nil || len(found) != 1 || found[0].Name != "a/FOUND.md" {
			t.Errorf("%+v: %+v, %v", f, found, err)
		}
	}
	a, data, err := d.Artifact(ctx, run.ID[:5], "a/FOUND.md")
	if err != nil || string(data) != "gold" || a.Run != run.ID {
		t.Errorf("%+v %q, %v", a, data, err)
	}
	for _, q := range [][2]string{{run.ID, "none"}, {run.ID, ""}, {"", "a/FOUND.md"}, {"none", "a/FOUND.md"}} {
		if _, _, err := d.Artifact(ctx, q[0], q[1]); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("%v: %v", q, err)
		}
	}
	receipt, err := d.Receive(ctx, goclaw.Inbound{Session: mainKey, Text: "/subagents info digger"})
	if err != nil || !strings.Contains(receipt.Reply, "left       "+a.Handle()+", 4 bytes\n") {
		t.Errorf("%s, %v", receipt.Reply, err)
	}
	table := gateway.ArtifactTable([]goclaw.Artifact{a})
	if head, line, _ := strings.Cut(table, "\n"); !strings.HasPrefix(head, "WRITTEN") || !strings.Contains(line, "        4  "+a.Handle()+"  text/markdown") {
		t.Error(table)
	}
	if got := gateway.ArtifactTable(nil); got != "No artifacts." {
		t.Error(got)
	}
}
