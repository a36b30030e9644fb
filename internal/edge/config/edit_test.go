package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func set(key, value string) Change { return Change{key, json.RawMessage(value)} }

func TestEdit(t *testing.T) {
	const model = `"anthropic/claude-sonnet-5-5"`
	tests := []struct {
		name, text string
		changes    []Change
		want       string
	}{
		{"a fresh file", "", []Change{
			set("$schema", `"./goclaw.schema.json"`), set("agents.defaults.model", model),
			set("models.providers.anthropic.apiKey", `{"secret":"anthropic"}`),
		}, `{
  "$schema": "./goclaw.schema.json",
  "agents": {
    "defaults": {"model": "anthropic/claude-sonnet-5-5"}
  },
  "models": {
    "providers": {
      "anthropic": {
        "apiKey": {"secret": "anthropic"}
      }
    }
  }
}
`},
		{"a value", "{\"agents\": {\"defaults\": {/* why */ \"model\": \"a/b\" /* so */}}} // end\n", []Change{set("agents.defaults.model", model)},
			"{\"agents\": {\"defaults\": {/* why */ \"model\": \"anthropic/claude-sonnet-5-5\" /* so */}}} // end\n"},
		{"in one line", `{"agents": {"defaults": {"model": "a/b"}}}`, []Change{set("agents.defaults.thinking", `"low"`)},
			`{"agents": {"defaults": {"model": "a/b", "thinking": "low"}}}`},
		{"behind a comment", "{\n\t// first\n\t\"tools\": {}, // the tools\n\t// last\n}\n", []Change{set("gateway.addr", `"127.0.0.1:1"`)},
			"{\n\t// first\n\t\"tools\": {}, // the tools\n\t\"gateway\": {\"addr\": \"127.0.0.1:1\"},\n\t// last\n}\n"},
		{"without a last comma", "{\n    \"tools\": {} // the tools, \"all\"\n}\n", []Change{set("gateway.addr", `"127.0.0.1:1"`)},
			"{\n    \"tools\": {}, // the tools, \"all\"\n    \"gateway\": {\"addr\": \"127.0.0.1:1\"}\n}\n"},
		{"a comment over lines", "{\n  \"tools\": {} /* the\n  tools */ }", []Change{set("gateway.addr", `"127.0.0.1:1"`)},
			"{\n  \"tools\": {}, /* the\n  tools */ \n  \"gateway\": {\"addr\": \"127.0.0.1:1\"}\n}"},
		{"the lines of another system", "{\r\n  \"tools\": {},\r\n}\r\n", []Change{set("gateway.addr", `"127.0.0.1:1"`)},
			"{\r\n  \"tools\": {},\r\n  \"gateway\": {\"addr\": \"127.0.0.1:1\"},\r\n}\r\n"},
		{"an empty object with a comment", "{\n  \"agents\": {\n    // nothing yet\n  }\n}", []Change{set("agents.defaults.model", model)},
			"{\n  \"agents\": {\n    // nothing yet\n    \"defaults\": {\"model\": \"anthropic/claude-sonnet-5-5\"}\n  }\n}"},
		{"an element", `{"tools": {"deny": ["exec", "ls"]}}`, []Change{set("tools.deny[1]", `"read"`), set("tools.deny[2]", `"write"`)},
			`{"tools": {"deny": ["exec", "read", "write"]}}`},
		{"a name with dots", `{}`, []Change{set("models.prices.openai/gpt-5.5.input", "3"), set("models.prices.openai/gpt-5.5.output", "4"), set("models.aliases.v1.5", `"a/b"`)},
			"{\n  \"models\": {\n    \"prices\": {\n      \"openai/gpt-5.5\": {\"input\": 3, \"output\": 4}\n    },\n    \"aliases\": {\"v1.5\": \"a/b\"}\n  }\n}"},
		{"out", "{\n  // the model\n  \"agents\": {\"defaults\": {\"model\": \"a/b\"}},\n  // tools\n  \"tools\": {\"deny\": []},\n}", []Change{{Key: "agents"}, {Key: "gateway.addr"}},
			"{\n  // tools\n  \"tools\": {\"deny\": []},\n}"},
		{"with a mark", "\uFEFF{}", []Change{set("gateway.addr", `"h:1"`)}, "\uFEFF{\n  \"gateway\": {\"addr\": \"h:1\"}\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Edit("goclaw.json", []byte(tt.text), tt.changes...)
			if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, tt := range []struct {
		text string
		c    Change
		want string
	}{
		{"{}", set("agents.defaults.modell", `"a/b"`), `unknown key "agents.defaults.modell"; did you mean model?`},
		{"{}", set("model", `"a/b"`), `unknown key "model"; did you mean models?`},
		{"{}", set("channels.telegram", `{}`), "channels is not supported by this version yet"},
		{"{}", set("agents.defaults.model", `3`), "agents.defaults.model must be a string, not a number; put it in double quotes"},
		{"{}", set("agents.defaults.model", `"swift"`), `agents.defaults.model: "swift" is neither; write provider/model`},
		{"{}", set("models.providers.local.baseURL", `"http://h"`), "models.providers.local.kind is missing; add it"},
		{"{}", set("gateway.drainSeconds", "601"), "gateway.drainSeconds is 601; use a whole number from 0 to 600"},
		{"{}", set("gateway.drainSeconds.x", "6"), `unknown key "gateway.drainSeconds.x"; gateway.drainSeconds holds nothing further`},
		{"{}", set("tools.deny[0]", `"exec"`), "tools.deny[0]: the list does not exist yet; set it as a whole"},
		{`{"tools": {"deny": []}}`, set("tools.deny[1]", `"exec"`), "tools.deny[1]: the list has 0 elements; 0 is the next"},
		{"{}", set("tools.deny.x", `"exec"`), "tools.deny is a list; write tools.deny[0]"},
		{"{}", set("tools.", `{}`), "a name is missing at its end"},
		{"{}", set("models.providers.A.kind", `"openai"`), "is not allowed"},
		{"{\"a\": 1}", set("gateway.addr", `"h:1"`), "goclaw.json:1:2: unknown key \"a\""},
	} {
		got, err := Edit("goclaw.json", []byte(tt.text), tt.c)
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s in %s: %s, %v; want %s", tt.c.Key, tt.text, got, err, tt.want)
		}
	}
}

func TestValue(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"agents.defaults.model", "a/b", `"a/b"`},
		{"agents.defaults.model", `"a/b"`, `"a/b"`},
		{"gateway.drainSeconds", "3", `3`},
		{"agents.defaults.subagents.maxConcurrent", "3", `3`},
		{"tools.deny", `["exec", ]`, `["exec"]`},
		{"gateway.token", `{"secret": "gw"}`, `{"secret":"gw"}`},
		{"models.providers.x.apiKey.secret", "gw", `"gw"`},
		{"models.providers.x.headers.X-Pass", "sk-hidden", "error: models.providers.x.headers.X-Pass is a secret"},
		{"gateway.token", "sk-hidden", "error: gateway.token is a secret, and a command line is no place for one"},
		{"gateway.drainSeconds", "sk-hidden", "error: gateway.drainSeconds: the value must be JSON"},
		{"gateway.x", "1", `error: unknown key "gateway.x"`},
	} {
		got, err := Value(tt.key, tt.text)
		if err != nil {
			got = json.RawMessage("error: " + err.Error())
		}
		if !strings.HasPrefix(string(got), tt.want) || strings.Contains(string(got), "hidden") {
			t.Errorf("%s %s: %s, want %s", tt.key, tt.text, got, tt.want)
		}
	}
}

func TestShow(t *testing.T) {
	cfg, err := parse("f", "/h", []byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"agents.defaults.model":                 `"smart"`,
		"agents.list[0].budget.day":             `{"seconds":3600,"steps":100}`,
		"agents.list[1]":                        "error: agents.list[1]: the list has 1 elements",
		"agents.entries.main.name":              `"Rat"`,
		"models.providers.far.apiKey":           `{"secret":"far"}`,
		"models.providers.far.apiKey.secret":    `"far"`,
		"models.providers.local.apiKey":         `"[secret]"`,
		"models.providers.local.headers.X-Team": `"[secret]"`,
		"models.prices.local/*.output":          "0.25",
		"gateway.token":                         `"[secret]"`,
		"gateway.drainSeconds":                  "0",
		"context.docs":                          `"https://example.org/docs"`,
		"models.aliases.nobody":                 "error: models.aliases.nobody is not set",
		"gateway.tokn":                          `error: unknown key "gateway.tokn"; did you mean token?`,
	} {
		v, err := cfg.Show(key)
		got, jerr := json.Marshal(v)
		if err != nil {
			got = []byte("error: " + err.Error())
		}
		if !strings.HasPrefix(string(got), want) || jerr != nil || want[0] != 'e' && string(got) != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	all, err := cfg.Show("")
	text, jerr := json.Marshal(all)
	if err != nil || jerr != nil || strings.Contains(string(text), "hidden") {
		t.Errorf("%v, %v, %s", err, jerr, text)
	}
	// What is shown is a configuration again, but for the secrets.
	again := strings.ReplaceAll(string(text), `"url":"[secret]"`, `"url":"postgres://h/d"`)
	if _, err := parse("f", "/h", []byte(again)); err != nil {
		t.Errorf("%v\n%s", err, again)
	}
	if _, err := Default().Show("agents.defaults.subagents.maxConcurrent"); err == nil || !strings.Contains(err.Error(), "Default: ") && !strings.Contains(err.Error(), "default: 8") {
		t.Errorf("%v", err)
	}
}

// Whatever the layout, an edit changes the one key and keeps every comment.
func TestEditKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := func() string {
			return rapid.SampledFrom([]string{"", " ", "\n", "\n\t", "// c, }\n", "/* d\n} */", " /* e */ ", "\n  // f\n  "}).Draw(t, "gap")
		}
		comma := rapid.SampledFrom([]string{"", ","}).Draw(t, "comma")
		text := gap() + "{" + gap() + `"tools":` + gap() + `{` + gap() + `"deny"` + gap() + `: ["exec"` + comma + gap() + `]` + gap() + comma + gap() + "}" + gap() +
			"," + gap() + `"gateway"` + gap() + ":" + gap() + "{" + gap() + "}" + gap() + comma + gap() + "}" + gap()
		key := rapid.SampledFrom([]string{"gateway.addr", "tools.deny[1]", "tools.allow", "agents.defaults.model", "tools.deny[0]", "models.aliases.a.b"}).Draw(t, "key")
		value := map[string]string{"gateway.addr": `"h:1"`, "tools.deny[1]": `"read"`, "tools.allow": `["write","ls"]`, "agents.defaults.model": `"a/b"`, "tools.deny[0]": `"glob"`, "models.aliases.a.b": `"a/b"`}[key]
		out, err := Edit("f", []byte(text), set(key, value))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		cfg, err := parse("f", "/", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		shown, err := cfg.Show(key)
		got, _ := json.Marshal(shown)
		if string(got) != value || err != nil {
			t.Fatalf("%s, %v\n%s", got, err, out)
		}
		for _, comment := range []string{"// c, }", "/* d\n} */", "/* e */", "// f"} {
			if strings.Count(string(out), comment) != strings.Count(text, comment) {
				t.Fatalf("%s is lost\n%s\n%s", comment, text, out)
			}
		}
	})
}
