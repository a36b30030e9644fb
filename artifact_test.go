package goclaw_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw"
)

func TestArtifactNames(t *testing.T) {
	for _, name := range []string{"DISCOVERY.md", "plans/PLAN.md", ".hidden", "a b.md", "été/ß.txt", "a..b", strings.Repeat("n", 200)} {
		if err := goclaw.CheckArtifactName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "a/..", "/a", "a/", "a//b", `a\b`, "C:a", "a\tb", "a\xff", "a\u200bb", "a\u00a0b", "a./b", "a /b", "...", "a|b", strings.Repeat("n", 201),
	} {
		if err := goclaw.CheckArtifactName(name); !goclaw.IsBadRequest(err) || strings.ContainsAny(err.Error(), "\n\t") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A name that is good stays below any folder, and its handle means it alone.
func TestArtifactHandles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[ -~ä./\\]{0,12}`).Draw(rt, "name")
		run := rapid.StringMatching(`[0-9a-f]{1,12}`).Draw(rt, "run")
		if goclaw.CheckArtifactName(name) != nil {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			rt.Fatalf("%q escapes", name)
		}
		gotRun, gotName, err := goclaw.ParseArtifactHandle(goclaw.Artifact{Run: run, Name: name}.Handle())
		if err != nil || gotName != name || !strings.HasPrefix(run, gotRun) || len(gotRun) != min(8, len(run)) {
			rt.Fatalf("%q %q, %v", gotRun, gotName, err)
		}
	})
	for _, bad := range []string{"", "PLAN.md", "artifact:", "artifact:x", "artifact:/x", "artifact:x/", "Artifact:x/y"} {
		if _, _, err := goclaw.ParseArtifactHandle(bad); !goclaw.IsBadRequest(err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func ExampleArtifact_Handle() {
	a := goclaw.Artifact{Run: "5eb436d5-12e9-4dea-8b4b-3e8393681c4a", Name: "plans/PLAN.md"}
	fmt.Println(a.Handle())
	fmt.Println(goclaw.ParseArtifactHandle(a.Handle()))
	// Output:
	// artifact:5eb436d5/plans/PLAN.md
	// 5eb436d5 plans/PLAN.md <nil>
}
