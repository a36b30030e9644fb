package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"
)

var update = flag.Bool("update", false, "write schema.json anew")

// node is an object of the schema, its keys in a fixed order.
type node struct {
	Schema               string           `json:"$schema,omitempty"`
	Title                string           `json:"title,omitempty"`
	Description          string           `json:"description,omitempty"`
	Type                 string           `json:"type,omitempty"`
	AnyOf                []*node          `json:"anyOf,omitempty"`
	Enum                 []string         `json:"enum,omitempty"`
	Pattern              string           `json:"pattern,omitempty"`
	MinLength            int              `json:"minLength,omitempty"`
	Minimum              *int             `json:"minimum,omitempty"`
	Maximum              *int             `json:"maximum,omitempty"`
	UniqueItems          bool             `json:"uniqueItems,omitempty"`
	Items                *node            `json:"items,omitempty"`
	PropertyNames        *node            `json:"propertyNames,omitempty"`
	Required             []string         `json:"required,omitempty"`
	Properties           map[string]*node `json:"properties,omitempty"`
	AdditionalProperties any              `json:"additionalProperties,omitempty"`
}

const (
	idPattern    = `^[a-z0-9][a-z0-9_-]{0,63}$`
	modelPattern = `^[a-z0-9][a-z0-9_-]{0,63}/\S(.*\S)?$`
)

// describe derives the schema of a value from its type and tags.
func describe(t reflect.Type, tag reflect.StructTag) *node {
	n := &node{Description: tag.Get("doc")}
	inner := func(t reflect.Type) *node {
		item := describe(t, tag)
		item.Description = ""
		return item
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem(), tag)
	case reflect.Struct:
		if t == reflect.TypeFor[Sealed]() {
			name := &node{Type: "string", Pattern: idPattern}
			return &node{Description: n.Description, AnyOf: []*node{
				describe(reflect.TypeFor[string](), reflect.StructTag(`format:"`+tag.Get("format")+`"`)),
				{Type: "object", Required: []string{secretKey}, Properties: map[string]*node{secretKey: name}, AdditionalProperties: false},
			}}
		}
		n.Type, n.AdditionalProperties, n.Properties = "object", false, map[string]*node{}
		for f := range fieldsOf(t) {
			if f.Type == reflect.TypeFor[unbuilt]() {
				continue
			}
			n.Properties[jsonName(f)] = describe(f.Type, f.Tag)
			if f.Tag.Get("required") != "" {
				n.Required = append(n.Required, jsonName(f))
			}
		}
	case reflect.Map:
		n.Type, n.AdditionalProperties = "object", inner(t.Elem())
		n.PropertyNames = &node{Pattern: map[string]string{
			"header": headerName.String(), "alias": `^[^/ \t\n]+$`, "price": pricePattern.String(),
		}[tag.Get("keys")]}
	case reflect.Slice:
		if tag.Get("keyed") != "" {
			item := describe(t.Elem(), "")
			item.Required = nil // the key is the id
			n.Type, n.AdditionalProperties, n.PropertyNames = "object", item, &node{Pattern: idPattern}
			break
		}
		n.Type, n.Items = "array", inner(t.Elem())
		n.UniqueItems = t.Elem().Kind() == reflect.String && tag.Get("repeats") == ""
	case reflect.Int:
		low, high := limits(tag)
		n.Type, n.Minimum, n.Maximum = "integer", &low, &high
	case reflect.Float64:
		low, high := limits(tag)
		n.Type, n.Minimum, n.Maximum = "number", &low, &high
	case reflect.Bool:
		n.Type = "boolean"
	case reflect.String:
		n.Type, n.MinLength = "string", 1
		if enum := tag.Get("enum"); enum != "" {
			n.Enum, n.MinLength = strings.Split(enum, ","), 0
		}
		n.Pattern = map[string]string{
			"id": idPattern, "provider/model": modelPattern, "url": `^https?://`,
			"env": `^[A-Za-z_][A-Za-z0-9_]*$`, "addr": `:[0-9]{1,5}$`, "clock": `^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`, "postgres": `^postgres(ql)?://`,
		}[tag.Get("format")]
	}
	return n
}

func TestSchemaIsThatOfTheStructs(t *testing.T) {
	root := describe(reflect.TypeFor[Config](), "")
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "goclaw.json"
	root.Description = "The configuration of GoClaw: JSON with comments and trailing commas."
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b.Bytes(), Schema()) {
		t.Error("schema.json is not that of the structs: run go test -update")
	}
}

// every setting of the file, once.
const fullFile = `// everything
{
  "$schema": "https://example.org/goclaw.schema.json",
  "agents": {
    "defaults": {
      "workspace": "ws", "model": "smart", "thinking": "low", "skills": ["pdf", "notes"], "userTimezone": "Europe/Berlin",
      "compaction": {"contextPercent": 50, "contextTokens": 90000, "keepRecentTokens": 8000, "memoryFlush": false},
      "heartbeat": {"every": "30m", "activeHours": {"start": "08:00", "end": "24:00", "timezone": "America/New_York"}, "model": "smart", "prompt": "look\nwell", "session": "agent:main:api:user:ann"},
      "subagents": {
        "maxSpawnDepth": 2, "maxChildrenPerAgent": 60, "maxRunsPerTree": 300, "maxConcurrent": 9, "maxConcurrentPerSession": 3, "runTimeoutSeconds": 30,
        "archiveAfterMinutes": 5, "announceWindowMs": 100, "announceMaxWaitSeconds": 7, "announceAttempts": 2,
        "resultTokens": 500, "restartPolicy": "ask", "budget": {"tokens": 9000, "usd": 0.5, "steps": 30, "seconds": 60},
        "allowAgents": ["coder"], "model": "openai/gpt-5.5", "thinking": "medium",
        "tools": {"allow": ["read", "exec"], "deny": ["write"]}, "inherit": ["TOOLS.md", "docs/STYLE.md", "memory"],
      },
    },
    "list": [
      {
        "id": "coder", "name": "Coder", "workspace": "/srv/code", "model": "local/qwen", "thinking": "high",
        "skills": [], "compaction": {"contextPercent": 0, "memoryFlush": true},
        "heartbeat": {"every": "0m", "activeHours": {"end": "07:30"}, "session": "main"},
        "tools": {"allow": ["*"], "deny": ["exec"]},
        "budget": {"run": {"tokens": 70000}, "tree": {"usd": 0}, "day": {"steps": 100, "seconds": 3600}},
        "subagents": {
          "maxSpawnDepth": 0, "maxConcurrent": 4, "maxRunsPerTree": 0, "resultTokens": 0, "restartPolicy": "fail", "budget": {"usd": 0.25, "steps": 0},
          "allowAgents": [], "tools": {"allow": [], "deny": ["edit"]}, "inherit": [],
        },
      },
    ],
    "entries": {"main": {"name": "Rat"}, "w_1": {"id": "w_1", "subagents": {"allowAgents": ["*"]}}},
  },
  "models": {
    "providers": {
      "anthropic": {"apiKeyEnv": "MY_KEY", "requestsPerMinute": 50, "tokensPerMinute": 40000}, "far": {"kind": "openai", "baseURL": "https://far.example/v1", "apiKey": {"secret": "far"}},
      "local": {"kind": "openai", "baseURL": "http://127.0.0.1:8000/v1", "apiKey": "sk-hidden", "headers": {"X-Team": "red", "X-Pass": {"secret": "pass"}}, "models": ["qwen", "phi"]},
    },
    "aliases": {"smart": "anthropic/claude-sonnet-5-5"}, /* one is enough */
    "windows": {"local/*": 32000, "anthropic/claude-sonnet-5-5": 400000},
    "prices": {"local/*": {"input": 0, "output": 0.25}, "anthropic/claude-sonnet-5-5": {"input": 2, "output": 10, "cacheRead": 0.1, "cacheWrite": 2.5}},
  },
  "tools": {"allow": ["read", "write", "exec"], "deny": ["glob"], "exec": {"timeoutSeconds": 9, "maxOutputBytes": 2048, "network": true, "readOnly": ["/opt", "data"]},
    "web": {"search": {"enabled": true, "provider": "brave", "apiKey": {"secret": "brave"}, "baseURL": "https://search.example", "maxResults": 7, "timeoutSeconds": 9},
      "fetch": {"enabled": false, "maxChars": 5000, "timeoutSeconds": 8, "maxRedirects": 0, "userAgent": "me/1", "allowHosts": ["wiki.example", "127.0.0.1:8080", "[::1]:80"]}}},
  "gateway": {"addr": "127.0.0.1:8080", "token": "tok-hidden", "drainSeconds": 0},
  "database": {"url": "postgres://rat:pw-hidden@db.example:5432/goclaw?sslmode=require"},
  "budget": {"run": {"tokens": 50000, "usd": 1, "steps": 40, "seconds": 600}, "tree": {"tokens": 200000, "usd": 5}, "day": {"usd": 20, "steps": 1000}},
  "context": {"fileMaxChars": 1000, "totalMaxChars": 5000, "files": ["./docs//STYLE.md", "SOUL.md", "AGENTS.md"], "dailyNotes": true,
    "owner": ["Ada", "+49 30 1234"], "docs": "https://example.org/docs", "sections": {"safety": "parts/safety.md"},
    "hook": {"command": ["hooks/trim", "-a", "-a"], "timeoutSeconds": 9}},
  "skills": {"extraDirs": ["more", "/srv/skills"], "disabled": ["pdf"], "limits": {"maxSkillsInPrompt": 10, "maxSkillsPromptChars": 900}},
  "cron": {"enabled": false, "maxConcurrentRuns": 9},
  "definitions": {"compat": false, "userFacingTools": ["read"]},
}
`

// The schema and the reader agree on what a good and a bad file is, as far as
// a schema can tell.
func TestSchemaAgreesWithLoad(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{fullFile: true, "{}": true}
	for _, b := range badFiles() {
		if !b.beyondSchema {
			files[b.text] = false
		}
	}
	for text, good := range files {
		std, err := hujson.Standardize([]byte(text))
		if err != nil {
			continue
		}
		var v any
		if err := json.Unmarshal(std, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != good {
			t.Errorf("the schema says %v of %s", err, text)
		}
		if _, err := parse("f", "/", []byte(text)); (err == nil) != good {
			t.Errorf("Load says %v of %s", err, text)
		}
	}
}

// What the documentation shows loads, and it names every key.
func TestDocumentation(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"config.md", "budgets.md", "cron.md"} {
		text, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		blocks := strings.Split(string(text), "```jsonc\n")
		if len(blocks) < 2 {
			t.Errorf("%s shows no configuration", name)
		}
		for _, block := range blocks[1:] {
			example, _, _ := strings.Cut(block, "```")
			if _, err := parse(name, "/", []byte(example)); err != nil {
				t.Errorf("%v\n%s", err, example)
			}
		}
	}
	var walk func(t reflect.Type) (names []string)
	walk = func(t reflect.Type) (names []string) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil
		}
		for f := range fieldsOf(t) {
			if f.Type != reflect.TypeFor[unbuilt]() {
				names = append(append(names, jsonName(f)), walk(f.Type)...)
			}
		}
		return names
	}
	for _, name := range walk(reflect.TypeFor[Config]()) {
		if name != "$schema" && !strings.Contains(all.String(), name) {
			t.Errorf("docs/config.md does not name %s", name)
		}
	}
}
