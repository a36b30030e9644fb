package setup_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"goclaw"
	"goclaw/cmd/goclaw/setup"
	"goclaw/internal/edge/ask"
	"goclaw/internal/edge/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world answers for the model servers: a key is right if it is "right".
type world struct {
	env    map[string]string
	models []string
	tried  []string // model with key
}

func (w *world) outside(a *ask.Asker) setup.Outside {
	return setup.Outside{
		Ask: a, Getenv: func(name string) string { return w.env[name] },
		Models: func(context.Context, config.Endpoint) ([]string, bool) { return w.models, len(w.models) > 0 },
		Try: func(_ context.Context, e config.Endpoint, model string) error {
			w.tried = append(w.tried, e.Name+"/"+model+" "+e.APIKey.Reveal())
			switch {
			case e.APIKey.Reveal() == "wrong":
				return &goclaw.ProviderError{Status: 401, Kind: "authentication_error", Message: "no"}
			case model == "nobody":
				return &goclaw.ProviderError{Status: 404, Kind: "model_not_found", Message: "no such model"}
			}
			return nil
		},
	}
}

func present(home string) setup.Present {
	return setup.Present{
		ModelKey: "agents.defaults.model", WorkspaceKey: "agents.defaults.workspace",
		Workspace: filepath.Join(home, "workspace"),
	}
}

func TestWizard(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	kept := config.Endpoint{Name: "openai", Kind: "openai", APIKey: "right", KeyFrom: "the system's keyring"}
	mine := config.Endpoint{Name: "mine", Kind: "openai", BaseURL: "http://h/v1"}
	tests := []struct {
		name    string
		answers []string
		set     func(p *setup.Present, w *world)
		want    setup.Plan
		tried   string
	}{
		{"the shortest way", []string{"", "right", "", "", ""}, nil, setup.Plan{
			Provider: "anthropic", Name: "anthropic", Kind: "anthropic", Key: "right", KeyFrom: setup.KeyNew,
			Model: "anthropic/claude-sonnet-5-5",
		}, "anthropic/claude-sonnet-5-5 right"},
		{"a wrong key, then the right one", []string{"2", "", "wrong", "x", "1", "right", "", ""}, nil, setup.Plan{
			Provider: "openai", Name: "openai", Kind: "openai", Key: "right", KeyFrom: setup.KeyNew, Model: "openai/x",
		}, "openai/x wrong, openai/x right"},
		{"an unknown model, kept all the same", []string{"1", "right", "nobody", "5", "", ""}, nil, setup.Plan{
			Provider: "anthropic", Name: "anthropic", Kind: "anthropic", Key: "right", KeyFrom: setup.KeyNew, Model: "anthropic/nobody",
		}, "anthropic/nobody right"},
		{"a key in the environment", []string{"", "", "", "", ""}, func(_ *setup.Present, w *world) {
			w.env = map[string]string{"OPENAI_API_KEY": "right", "OPENAI_BASE_URL": "http://proxy/v1"}
		}, setup.Plan{
			Provider: "openai", Name: "openai", Kind: "openai", URL: "http://proxy/v1", KeyFrom: setup.KeyEnv, KeyVar: "OPENAI_API_KEY", Model: "openai/gpt-5.5",
		}, "openai/gpt-5.5 right"},
		{"once more, all as it was", []string{"", "", "", "", ""}, func(p *setup.Present, w *world) {
			p.Model, p.Endpoints = "openai/mine", []config.Endpoint{kept}
			w.env = map[string]string{"ANTHROPIC_API_KEY": "right"}
		}, setup.Plan{
			Provider: "openai", Name: "openai", Kind: "openai", KeyFrom: setup.KeyAsWas, Model: "openai/mine",
		}, "openai/mine right"},
		{"another key than the one that is there", []string{"", "n", "right", "", "", ""}, func(p *setup.Present, _ *world) {
			p.Model, p.Endpoints = "openai/mine", []config.Endpoint{kept}
		}, setup.Plan{
			Provider: "openai", Name: "openai", Kind: "openai", Key: "right", KeyFrom: setup.KeyNew, Model: "openai/mine",
		}, "openai/mine right"},
		{"a key in clear text moves out", []string{"", "", "", "", ""}, func(p *setup.Present, _ *world) {
			clear := kept
			clear.KeyInClear = true
			p.Model, p.Endpoints = "openai/mine", []config.Endpoint{clear}
		}, setup.Plan{
			Provider: "openai", Name: "openai", Kind: "openai", Key: "right", KeyFrom: setup.KeyNew, Model: "openai/mine",
		}, "openai/mine right"},
		{"a server of one's own", []string{"3", "https://openrouter.ai/api/v1", "", "right", "", "", ""}, func(_ *setup.Present, w *world) {
			w.models = []string{"a", "b"}
		}, setup.Plan{
			Provider: "compatible", Name: "openrouter", Kind: "openai", URL: "https://openrouter.ai/api/v1", Key: "right", KeyFrom: setup.KeyNew, Model: "openrouter/a",
		}, "openrouter/a right"},
		{"that server again, without a key", []string{"", "", "", "", "", "", ""}, func(p *setup.Present, _ *world) {
			p.Model, p.Endpoints = "mine/m", []config.Endpoint{mine}
		}, setup.Plan{
			Provider: "compatible", Name: "mine", Kind: "openai", URL: "http://h/v1", KeyFrom: setup.KeyNone, Model: "mine/m",
		}, "mine/m "},
		{"Ollama that was found", []string{"", "phi", "", ""}, func(p *setup.Present, w *world) {
			p.Ollama, w.models = "http://127.0.0.1:11434/v1", []string{"qwen", "phi"}
		}, setup.Plan{
			Provider: "ollama", Name: "ollama", Kind: "openai", URL: "http://127.0.0.1:11434/v1", KeyFrom: setup.KeyNone, Model: "ollama/phi",
		}, "ollama/phi "},
		{"the demonstration", []string{"5", "", ""}, nil, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline",
		}, ""},
		{"OpenClaw's workspace, shared", []string{"5", "2", ""}, func(p *setup.Present, _ *world) { p.OpenClaw = "/o/workspace" }, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline", Workspace: "/o/workspace", Shared: true,
		}, ""},
		{"OpenClaw's workspace, copied elsewhere", []string{"5", "1", home + "/ws", ""}, func(p *setup.Present, _ *world) { p.OpenClaw = "/o/workspace" }, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline", Workspace: home + "/ws", CopyFrom: "/o/workspace",
		}, ""},
		{"with a heartbeat", []string{"5", "", "y"}, nil, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline", Heartbeat: "30m",
		}, ""},
		{"no heartbeat any more", []string{"5", "", "n"}, func(p *setup.Present, _ *world) { p.Heartbeat = "1h" }, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline", Heartbeat: "0m",
		}, ""},
		{"the heartbeat stays", []string{"5", "", ""}, func(p *setup.Present, _ *world) { p.Heartbeat = "1h" }, setup.Plan{
			Provider: "demo", Name: "demo", Kind: "demo", KeyFrom: setup.KeyNone, Model: "demo/offline",
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, w := present(home), &world{}
			if tt.set != nil {
				tt.set(&now, w)
			}
			var shown strings.Builder
			a, err := ask.New(strings.NewReader(strings.Join(tt.answers, "\n")+"\n"), &shown)
			if err != nil {
				t.Fatal(err)
			}
			got, err := setup.Run(t.Context(), setup.Given{}, now, w.outside(a))
			if err != nil {
				t.Fatalf("%v\n%s", err, shown.String())
			}
			if tt.want.Workspace == "" {
				tt.want.Workspace = ws
			}
			tt.want.Tried, tt.want.Verdict = got.Tried, got.Verdict
			if diff := cmp.Diff(tt.want, got); diff != "" || got.Verdict == "" || got.Tried == strings.Contains(tt.name, "all the same") {
				t.Errorf("%s%s", diff, shown.String())
			}
			if diff := cmp.Diff(tt.tried, strings.Join(w.tried, ", ")); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(shown.String(), "wrong\n") || strings.Contains(shown.String(), "right\n") {
				t.Errorf("a key is shown:\n%s", shown.String())
			}
			if rest, err := a.Line(t.Context(), "", ""); !errors.Is(err, ask.ErrEnd) {
				t.Errorf("%q was not asked for", rest)
			}
		})
	}
}

func TestWizardStops(t *testing.T) {
	for _, tt := range []struct {
		answers string
		want    error
	}{
		{"1\nwrong\n\n6\n", setup.ErrLeft},
		{"1\nwrong\n", ask.ErrEnd},
		{"", ask.ErrEnd},
	} {
		a, err := ask.New(strings.NewReader(tt.answers), &strings.Builder{})
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := setup.Run(t.Context(), setup.Given{}, present(t.TempDir()), (&world{}).outside(a)); !errors.Is(err, tt.want) || plan != (setup.Plan{}) {
			t.Errorf("%q: %v", tt.answers, err)
		}
	}
}

func TestChanges(t *testing.T) {
	home := t.TempDir()
	standard := filepath.Join(home, "workspace")
	openai := config.Endpoint{Name: "openai"}
	for _, tt := range []struct {
		name string
		plan setup.Plan
		set  func(p *setup.Present)
		file string
		want string
	}{
		{"fresh", setup.Plan{Name: "anthropic", Kind: "anthropic", KeyFrom: setup.KeyNew, Model: "anthropic/m"}, nil, "",
			`{"agents":{"defaults":{"model":"anthropic/m"}},"models":{"providers":{"anthropic":{"apiKey":{"secret":"anthropic"}}}}}`},
		{"the key moves into the environment", setup.Plan{Name: "openai", Kind: "openai", KeyFrom: setup.KeyEnv, KeyVar: "K", Model: "openai/m"},
			func(p *setup.Present) { p.Endpoints = []config.Endpoint{openai} },
			`{"models":{"providers":{"openai":{"apiKey":"sk-plain","requestsPerMinute":5}}}}`,
			`{"models":{"providers":{"openai":{"requestsPerMinute":5,"apiKeyEnv":"K"}}},"agents":{"defaults":{"model":"openai/m"}}}`},
		{"the key moves out of the file", setup.Plan{Name: "openai", Kind: "openai", KeyFrom: setup.KeyNew, Model: "openai/m"},
			func(p *setup.Present) { p.Endpoints = []config.Endpoint{openai} },
			`{"models":{"providers":{"openai":{"apiKey":"sk-plain"}}}}`,
			`{"models":{"providers":{"openai":{"apiKey":{"secret":"openai"}}}},"agents":{"defaults":{"model":"openai/m"}}}`},
		{"another folder, and the key stays", setup.Plan{Name: "openai", Kind: "openai", KeyFrom: setup.KeyAsWas, Model: "openai/m", Workspace: "/w"},
			func(p *setup.Present) { p.Endpoints = []config.Endpoint{openai} },
			`{"models":{"providers":{"openai":{"apiKey":"sk-plain"}}}}`,
			`{"models":{"providers":{"openai":{"apiKey":"sk-plain"}}},"agents":{"defaults":{"model":"openai/m","workspace":"/w"}}}`},
		{"back to the usual folder, for an agent of its own", setup.Plan{Provider: "demo", Name: "demo", Kind: "demo", Model: "demo/offline"},
			func(p *setup.Present) {
				p.Workspace, p.ModelKey, p.WorkspaceKey = "/w", "agents.list[0].model", "agents.list[0].workspace"
			},
			`{"agents":{"list":[{"id":"main","model":"a/b","workspace":"/w"}]}}`, `{"agents":{"list":[{"id":"main","model":"demo/offline"}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := present(home)
			if tt.set != nil {
				tt.set(&now)
			}
			if tt.plan.Workspace == "" {
				tt.plan.Workspace = standard
			}
			changes, err := tt.plan.Changes(now, standard)
			if err != nil {
				t.Fatal(err)
			}
			text, err := config.Edit("goclaw.json", []byte(tt.file), changes...)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(tt.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s%s", diff, text)
			}
		})
	}
}

func TestCopyWorkspace(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "memory"), 0o700), os.WriteFile(filepath.Join(from, "memory", "a.md"), []byte("x"), 0o600), os.Symlink("memory/a.md", filepath.Join(from, "link"))); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "new", "workspace")
	if err := setup.CopyWorkspace(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "link")); string(text) != "x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(to, "memory", "a.md")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := setup.CopyWorkspace(from, to); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
	if err := setup.CopyWorkspace(filepath.Join(dir, "nowhere"), filepath.Join(dir, "other")); err == nil {
		t.Error("nothing was copied")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".copy-*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
