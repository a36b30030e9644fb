package slice_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/slices"
	"goclaw/internal/edge/tool/slice"
)

// glue joins the reader to the assembler, as its caller does.
type glue struct {
	ctx       context.Context
	workspace string
	access    goclaw.Access
}

func (g glue) Files(wants []slices.Want) ([]slices.Found, error) {
	asked := make([]slice.Want, len(wants))
	for i, w := range wants {
		asked[i] = slice.Want{Name: w.Name, File: w.File, Glob: w.Glob, Optional: w.Optional, Lenient: w.Lenient}
	}
	read, err := slice.Reader{}.Read(g.ctx, g.workspace, g.access, asked)
	if err != nil {
		return nil, err
	}
	found := make([]slices.Found, len(read))
	for i, f := range read {
		found[i] = slices.Found(f)
	}
	return found, nil
}

func (glue) Artifact(string) (slices.Found, error) { return slices.Found{}, goclaw.ErrNotFound }

// Nothing private reaches a worker's slices: not by name, value, pattern, list
// or mention.
func TestAssembleKeepsPrivateFilesOut(t *testing.T) {
	dir := workspace(t, map[string]string{
		"SOUL.md": "canary", "memory/2026.md": "canary", "src/a.go": "package a",
		"PLAN.md": "---\nfiles: [SOUL.md]\nall: [src/a.go]\n---\nSee SOUL.md, memory/2026.md and src/a.go.",
	})
	g := glue{context.Background(), dir, worker}
	input := json.RawMessage(`{"f": "SOUL.md", "list": ["src/a.go", "memory/2026.md"], "d": "memory"}`)
	plan := definition.Slice{File: "PLAN.md", Tag: "plan"}
	for _, s := range []definition.Slice{
		{File: "SOUL.md"}, {File: "{{f}}"}, {File: "{{d}}/2026.md", Optional: true}, {Glob: "{{d}}/*.md"}, {Glob: "SO*.md"},
		{From: "f"}, {From: "list", Optional: true}, {From: "plan.files"}, {From: "f.files"}, {From: "mentions:f"},
	} {
		s.Line, s.Col = 7, 3
		got, err := slices.Assemble("d.md", []definition.Slice{plan, s}, input, g)
		if err == nil || !strings.HasPrefix(err.Error(), "d.md:7:3: ") || !strings.Contains(err.Error(), "private to the main agent") {
			t.Errorf("%+v: %v, error %v", s, got, err)
		}
	}
	got, err := slices.Assemble("d.md", []definition.Slice{plan, {From: "mentions:plan", Tag: "code"}, {From: "plan.all"}, {Glob: "**/*.md", Tag: "docs"}}, input, g)
	if err != nil {
		t.Fatal(err)
	}
	if text := slices.Render(got); strings.Contains(text, "canary") || strings.Count(text, "package a") != 2 || strings.Count(text, "<docs ") != 1 {
		t.Errorf("%s", text)
	}
}
