package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFromEnv(t *testing.T) {
	probe := func(models ...string) func(string) ([]string, bool) {
		return func(url string) ([]string, bool) {
			if url != "http://127.0.0.1:11434/v1" {
				t.Errorf("probed %s", url)
			}
			return models, true
		}
	}
	tests := []struct {
		name  string
		vars  map[string]string
		probe func(string) ([]string, bool)
		want  string // name=default model@base URL; ! for unsupported
	}{
		{"nothing", nil, nil, "demo=demo/offline@"},
		{"no ollama", nil, func(string) ([]string, bool) { return nil, false }, "demo=demo/offline@"},
		{"all", map[string]string{
			"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://p", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g",
		}, probe("llama3", "phi"), "anthropic=anthropic/claude-sonnet-5-5@http://p openai=openai/gpt-5.5@ !gemini=@ ollama=ollama/llama3@http://127.0.0.1:11434/v1 demo=demo/offline@"},
		{"gemini only", map[string]string{"GEMINI_API_KEY": "g"}, nil, "!gemini=@ demo=demo/offline@"},
		{"ollama without models", nil, probe(), "ollama=@http://127.0.0.1:11434/v1 demo=demo/offline@"},
		{"ollama host", map[string]string{"OLLAMA_HOST": "box:1234"}, nil, "ollama=@http://box:1234/v1 demo=demo/offline@"},
		{"ollama nonsense", map[string]string{"OLLAMA_HOST": "ftp://x"}, nil, "!ollama=@ demo=demo/offline@"},
		{"base URL without key", map[string]string{"OPENAI_BASE_URL": "http://p"}, nil, "demo=demo/offline@"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range FromEnv(env(tt.vars), tt.probe) {
				s := e.Name + "=" + e.DefaultModel + "@" + e.BaseURL
				if e.Unsupported {
					s = "!" + s
				}
				if e.Note == "" {
					t.Errorf("%s: no note", e.Name)
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestOllamaURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "http://127.0.0.1:11434/v1",
		"0.0.0.0":                "http://127.0.0.1:11434/v1",
		":5000":                  "http://127.0.0.1:5000/v1",
		"[::]:5000":              "http://[::1]:5000/v1",
		"box":                    "http://box:11434/v1",
		"https://o.example":      "https://o.example/v1",
		"http://box:1/proxy/":    "http://box:1/proxy/v1",
		"http://box:1/v1":        "http://box:1/v1",
		"ftp://box":              "",
		"http://u:secret@box:1/": "",
	} {
		got, err := ollamaURL(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	cfg, err := parse("f", "/", []byte(`{"models": {"providers": {
		"local": {"kind": "openai", "baseURL": "http://h/v1", "models": ["qwen"], "idleTimeoutSeconds": 7},
		"work": {"kind": "anthropic", "apiKeyEnv": "WORK_KEY"},
		"openai": {},
	}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := cfg.Endpoints(env(map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}), nil, nil)
	var names []string
	for _, e := range got {
		names = append(names, e.Name)
	}
	if s := strings.Join(names, " "); s != "local work openai anthropic demo" {
		t.Fatalf("got %s", s)
	}
	if e := got[0]; e.DefaultModel != "local/qwen" || e.Unsupported || e.IdleTimeout != 7*time.Second {
		t.Errorf("%+v", e)
	}
	if e := got[1]; !e.Unsupported || !strings.Contains(e.Note, "WORK_KEY") {
		t.Errorf("%+v", e)
	}
	if e := got[2]; e.Unsupported || e.APIKey.Reveal() != "o" || e.DefaultModel != "openai/gpt-5.5" {
		t.Errorf("%+v", e)
	}
}

func TestSecretsOfTheFile(t *testing.T) {
	cfg, err := parse("f", "/", []byte(`{
		"models": {"providers": {
			"there": {"kind": "openai", "baseURL": "http://h/v1", "apiKey": {"secret": "one"}, "headers": {"X-Pass": {"secret": "two"}}},
			"gone": {"kind": "openai", "baseURL": "http://h/v1", "apiKey": {"secret": "none"}},
			"clear": {"kind": "openai", "baseURL": "http://h/v1", "apiKey": "sk-clear"},
			"bare": {"kind": "openai", "baseURL": "http://h/v1"},
		}},
		"gateway": {"token": {"secret": "one"}}, "database": {"url": {"secret": "db"}},
	}`))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{"one": "sk-one", "two": "sk-two", "db": "postgres://u:pw@h/db"}
	secrets := func(name string) (string, string, error) {
		if kept[name] == "" {
			return "", "", errors.New("there is no such secret")
		}
		return kept[name], "the keyring", nil
	}
	got := cfg.Endpoints(env(nil), nil, secrets)
	if e := got[0]; e.APIKey.Reveal() != "sk-one" || e.KeyFrom != `the keyring, secret "one"` || e.KeyInClear || e.Headers["X-Pass"].Reveal() != "sk-two" || e.Unsupported {
		t.Errorf("%+v", e)
	}
	if e := got[1]; !e.Unsupported || e.Note != "models.providers.gone.apiKey: there is no such secret" {
		t.Errorf("%+v", e)
	}
	if e := got[2]; e.APIKey.Reveal() != "sk-clear" || !e.KeyInClear || !strings.Contains(e.KeyFrom, "in clear text") {
		t.Errorf("%+v", e)
	}
	if e := got[3]; e.Unsupported || e.APIKey != "" || e.KeyFrom != "" {
		t.Errorf("%+v", e)
	}
	token, from, err := cfg.Token(env(nil), secrets)
	if token.Reveal() != "sk-one" || from != "gateway.token" || err != nil {
		t.Errorf("%q from %s, %v", token.Reveal(), from, err)
	}
	if token, from, err := cfg.Token(env(map[string]string{"GOCLAW_TOKEN": "t"}), nil); token.Reveal() != "t" || from != "GOCLAW_TOKEN" || err != nil {
		t.Errorf("%q from %s, %v", token.Reveal(), from, err)
	}
	if address, err := cfg.DatabaseURL(env(nil), secrets); address.Reveal() != kept["db"] || err != nil {
		t.Errorf("%q, %v", address.Reveal(), err)
	}
	kept["db"] = "sk-no-address"
	if _, err := cfg.DatabaseURL(env(nil), secrets); err == nil || strings.Contains(err.Error(), "sk-") {
		t.Error(err)
	}
	// Without them nothing opens, and nothing is taken for empty.
	_, _, errToken := cfg.Token(env(nil), nil)
	_, errDatabase := cfg.DatabaseURL(env(nil), nil)
	if e := cfg.Endpoints(env(nil), nil, nil)[0]; !e.Unsupported || errToken == nil || errDatabase == nil {
		t.Errorf("%+v, %v, %v", e, errToken, errDatabase)
	}
	want := map[string][]string{
		"one": {"models.providers.there.apiKey", "gateway.token"}, "two": {"models.providers.there.headers.X-Pass"},
		"none": {"models.providers.gone.apiKey"}, "db": {"database.url"},
	}
	if diff := cmp.Diff(want, cfg.SecretNames()); diff != "" {
		t.Error(diff)
	}
}

func TestModelFromEnv(t *testing.T) {
	cfg, err := parse("f", "/", []byte(`{"models": {"aliases": {"smart": "a/b"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"": "", "smart": "a/b", "openai/gpt-5.5": "openai/gpt-5.5", "x/y/z": "x/y/z", "dumb": "!", "/x": "!", "x/": "!"} {
		got, err := cfg.ModelFromEnv(env(map[string]string{"GOCLAW_MODEL": in}))
		if (err != nil) != (want == "!") || err == nil && got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestHomeDir(t *testing.T) {
	if got, err := HomeDir(env(map[string]string{"HOME": "/home/rat"})); err != nil || got != filepath.FromSlash("/home/rat/.goclaw") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := HomeDir(env(map[string]string{"HOME": "/home/rat", "GOCLAW_HOME": "/srv/claw/"})); err != nil || got != filepath.FromSlash("/srv/claw") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := HomeDir(env(map[string]string{"GOCLAW_HOME": "rel"})); err != nil || !filepath.IsAbs(got) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := HomeDir(env(nil)); err == nil {
		t.Errorf("%q without a home", got)
	}
	if got := FileIn("/h"); got != filepath.Join("/h", "goclaw.json") {
		t.Error(got)
	}
}

func TestDatabaseURL(t *testing.T) {
	cfg, err := parse("f", "/", []byte(`{"database": {"url": "postgres://file/db"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cfg   Config
		given string
		want  string
	}{
		{Default(), "", ""},
		{cfg, "", "postgres://file/db"},
		{cfg, "postgresql://u:p@a:5432,b:5432/db", "postgresql://u:p@a:5432,b:5432/db"},
		{Default(), "postgres:///db?host=/run/postgresql", "postgres:///db?host=/run/postgresql"},
	} {
		got, err := tt.cfg.DatabaseURL(env(map[string]string{"GOCLAW_DATABASE_URL": tt.given}), nil)
		if err != nil || got.Reveal() != tt.want {
			t.Errorf("%q: %q, %v", tt.given, got.Reveal(), err)
		}
	}
	for _, bad := range []string{"host=sk-secret dbname=x", "mysql://sk-secret@h/db", "postgres:sk-secret", "postgres://u:sk-secret %@h"} {
		got, err := cfg.DatabaseURL(env(map[string]string{"GOCLAW_DATABASE_URL": bad}), nil)
		if err == nil || got != "" || strings.Contains(err.Error(), "sk-secret") || !strings.HasPrefix(err.Error(), "GOCLAW_DATABASE_URL is no address") {
			t.Errorf("%q: %q, %v", bad, got.Reveal(), err)
		}
	}
}
