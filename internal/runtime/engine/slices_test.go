package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/core/slices"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/tool/slice"
	"goclaw/internal/runtime/engine"
)

type sliceTexts struct{}

func (sliceTexts) Read(ctx context.Context, dir string, access goclaw.Access, wants []slices.Want) ([]slices.Found, error) {
	asked := make([]slice.Want, len(wants))
	for i, w := range wants {
		asked[i] = slice.Want{Name: w.Name, File: w.File, Glob: w.Glob, Optional: w.Optional, Lenient: w.Lenient}
	}
	read, err := slice.Reader{}.Read(ctx, dir, access, asked)
	found := make([]slices.Found, len(read))
	for i, f := range read {
		found[i] = slices.Found(f)
	}
	return found, err
}

const slicedFile = `---
name: planner-s
description: Plans a phase.
tools: [artifact_write]
goclaw:
  promptMode: none
  input: {type: object, required: [phase], properties: {phase: {type: string}}}
  context:
    - {file: PROJECT.md, tag: vision, maxTokens: 50, overflow: cut}
    - {glob: "phases/{{phase}}/*.md", tag: constraints, optional: true}
  artifacts: [{path: "{{phase}}-PLAN.md", min: 1}]
---
You plan.`

// A worker gets the slices that its definition names and nothing else; a
// missing one refuses the spawn before a token is spent, and so does a private
// one. It is not done before it has left what it must.
func TestSlicesAndDeclaredArtifacts(t *testing.T) {
	asked, refused := 0, ""
	w := newWired(t, providertest.WireAnthropic, func(q *providertest.Request) providertest.Answer {
		switch {
		case q.Worker():
			asked++
			first := q.FirstText()
			for _, want := range []string{"<vision", "head of the project", "bytes left out", "</vision>", "<constraints", "stone only", `{"phase":"one"}`} {
				if !strings.Contains(first, want) && asked == 1 {
					t.Errorf("%q is not in\n%s", want, first)
				}
			}
			if q.System != "You plan." {
				t.Errorf("the system prompt is %q", q.System)
			}
			switch asked {
			case 2:
				if !strings.Contains(q.NewestText(), "one-PLAN.md") {
					t.Errorf("it is not reminded: %s", q.NewestText())
				}
				return providertest.Answer{Calls: []providertest.Call{{Name: "artifact_write", Arguments: `{"name":"one-PLAN.md","content":"1. dig"}`}}}
			default:
				return providertest.Answer{Text: "done"}
			}
		case len(q.NewestResults()) > 0:
			refused = q.NewestResults()[0].Content
			return providertest.Answer{Text: "ok"}
		case strings.HasSuffix(q.NewestText(), "plan"):
			return providertest.Answer{Calls: []providertest.Call{
				{Name: "sessions_spawn", Arguments: `{"agent":"broken","task":"x"}`},
				{Name: "sessions_spawn", Arguments: `{"agent":"planner-s","task":"plan","input":{"phase":"one"}}`},
			}}
		}
		return providertest.Answer{Text: "ok"}
	}, func(o *engine.Options) {
		withArtifacts(o)
		o.Texts = sliceTexts{}
		o.Rules.Definitions = catalogOf(t, map[string]string{
			"s.md": slicedFile,
			"b.md": "---\nname: broken\ndescription: x\ngoclaw:\n  context: [{file: MEMORY.md}]\n---\nx",
		})
	})
	for name, text := range map[string]string{
		"PROJECT.md": "head of the project\n" + strings.Repeat("more and more\n", 200), "phases/one/a.md": "stone only", "phases/two/b.md": "wood",
	} {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	w.turn(goclaw.TriggerUser, "plan")
	if !strings.Contains(refused, "b.md:5:13") || !strings.Contains(refused, "private to the main agent") {
		t.Errorf("refused with %s", refused)
	}
	run := w.worker("planner-s")
	if run.State != goclaw.StateCompleted || run.Result != "done" || asked != 3 {
		t.Errorf("%s %q %s after %d calls", run.State, run.Result, run.Error, asked)
	}
	shown, err := w.engine.Explain(t.Context(), goclaw.ContextQuery{Session: run.Session})
	if err != nil || len(shown.Sections) != 1 || shown.Sections[0].Text != "You plan." {
		t.Errorf("its session is shown as %+v, %v", shown.Sections, err)
	}
}
