package definition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/core/definition"
)

func ExampleParse() {
	d := definition.Parse("agents/scout.md", []byte("---\nname: scout\ndescription: Looks around.\ntools: Read, Bash(git:*), TodoWrite\ndisallowedTools: [WebFetch]\n---\nYou scout.\n"), definition.Options{})
	fmt.Println(d.Status, d.AllowedTools(), d.DeniedTools())
	fmt.Println(d.Tools.Decide("exec", "git log"), d.Tools.Decide("exec", "rm -r ."))
	for _, p := range d.Problems {
		fmt.Println(p.Level, p.Render(d.Path))
	}
	// Output:
	// ok [exec read] [web_fetch]
	// allow deny
	// notice agents/scout.md:4:27: no counterpart here, left out: TodoWrite; nothing to do, unless the worker can't do without
}

// file is a definition with more lines in its frontmatter; they begin on line 4.
func file(lines ...string) []byte {
	return []byte("---\nname: scout\ndescription: Looks around.\n" + strings.Join(lines, "\n") + "\n---\nYou scout.\n")
}

func parse(lines ...string) definition.Definition {
	return definition.Parse("scout.md", file(lines...), definition.Options{})
}

func problems(d definition.Definition) string {
	var out []string
	for _, p := range d.Problems {
		out = append(out, fmt.Sprintf("%s %d:%d %s", p.Level, p.Line, p.Col, p.Message))
	}
	return strings.Join(out, "\n")
}

func TestEveryKey(t *testing.T) {
	d := parse(
		"tools: [read, exec]", "disallowedTools: exec", "model: fast", "modelRole: Compaction", "thinking: HIGH", "effort: low",
		"maxTurns: 12", "timeoutSeconds: 0", "visibility: Internal", "mode: subagent", "temperature: 0.5", "skills: [a, b]",
		"mcpServers: []", "emitStructuredFindings: true",
		"goclaw:", "  version: 1", "  promptMode: none", "  inherit: []",
		"  input: {type: object, required: [phase], properties: {phase: {type: string}}}",
		"  context:", "    - {file: .planning/PROJECT.md, tag: vision, maxTokens: 2000}",
		`    - {glob: ".planning/{{phase}}/*.md", optional: true, overflow: outline}`,
		"  output: {format: xml, tag: plan, stop: ['</plan>'], retries: 1}",
		`  artifacts: [{path: "out/*.md", min: 2}]`,
		"  limits: {contextPercent: 60, contextTokens: 120000, onLimit: handoff, maxHandoffs: 3, resultTokens: 2000}",
	)
	if d.Status != definition.StatusOK {
		t.Fatal(problems(d))
	}
	zero, half, three, two := 0, 0.5, 3, 2000
	want := definition.Definition{
		Path: "scout.md", Trusted: true, Name: "scout", Description: "Looks around.", Body: "You scout.\n",
		SHA256: "8038bf53d4c2618da394689896465537deccc04566701ca857cb587f50a6a5cd", Status: definition.StatusOK,
		Tools: definition.Tools{Allow: []string{"read"}, Deny: []string{"exec"}},
		Model: "fast", ModelRole: "compaction", Thinking: "high", Effort: "low", MaxTurns: 12, TimeoutSeconds: &zero,
		Visibility: "internal", Mode: "subagent", Temperature: &half, Skills: []string{"a", "b"}, EmitFindings: true,
		Typed: definition.Typed{
			Version: 1, PromptMode: goclaw.PromptNone, Inherit: []string{},
			Input: []byte(`{"properties":{"phase":{"type":"string"}},"required":["phase"],"type":"object"}`),
			Context: []definition.Slice{
				{File: ".planning/PROJECT.md", Tag: "vision", MaxTokens: 2000, Overflow: "error", Line: 24, Col: 7},
				{Glob: ".planning/{{phase}}/*.md", Optional: true, Overflow: "outline", Line: 25, Col: 7},
			},
			Output:    &definition.Output{Format: "xml", Tag: "plan", Stop: []string{"</plan>"}, Retries: 1},
			Artifacts: []definition.Artifact{{Path: "out/*.md", Min: 2}},
			Limits:    definition.Limits{ContextPercent: 60, ContextTokens: 120_000, OnLimit: "handoff", MaxHandoffs: &three, ResultTokens: &two},
		},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestRejections(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"tool: Read", `error 4:1 unknown key "tool"`},
		{"Tools: Read", `error 4:1 unknown key "Tools"`},
		{"description_: x", `error 4:1 unknown key "description_"`},
		{"promptMode: none", "error 4:1 the key promptMode does not stand at the top"},
		{"tools: ~", "error 4:8 tools is empty (null)"},
		{"tools:", "error 4:7 tools is empty (null)"},
		{"tools: ''", "error 4:8 tools is an empty text"},
		{"tools: {}", "error 4:8 tools is an empty map"},
		{"tools: 3", "error 4:8 tools is a whole number"},
		{"tools: [Read, 3]", "error 4:15 tools holds a whole number, not a tool's name"},
		{"tools: {read: yes}", "error 4:15 tools.read is a string, not true or false"},
		{"tools: Read, Wirte", `error 4:14 unknown tool "Wirte"`},
		{"tools: [Read, frobnicate]", `error 4:15 unknown tool "frobnicate"`},
		{"tools: web_serch", `error 4:8 unknown tool "web_serch"`},
		{"tools: TodoWrite, AskUserQuestion", "notice 4:8 no counterpart here, left out: AskUserQuestion, TodoWrite\nerror 4:8 none of the tools that it lists exists here"},
		{"tools: cron", "error 4:8 no worker may have the tool cron"},
		{"disallowedTools: Bsh", `error 4:18 unknown tool "Bsh"`},
		{"disallowedTools: {}", "error 4:18 disallowedTools is a map"},
		{"allowedTools: Read\ntools: Write", "error 5:1 tools says the same as allowedTools on line 4"},
		{"permission: {bash: never}", "error 4:20 permission bash is not allow, ask or deny"},
		{"permissions: [{action: edit, resource: '*'}]", "error 4:15 a rule of permissions needs action and effect"},
		{"permissions: [{action: edit, effect: maybe}]", "error 4:38 permission effect is not allow, ask or deny"},
		{"permissions: [{capability: shell, effect: deny}]", "error 4:16 a rule of permissions has no key capability"},
		{"disallowedTools:", "error 4:17 disallowedTools is null"},
		{"permission:", "error 4:12 permission is null"},
		{"permission: {baash: deny}", `error 4:14 unknown tool "baash"`},
		{"model: 4", "error 4:8 model is a whole number"},
		{"modelRole: fats", `error 4:12 modelRole is "fats"`},
		{"thinking: maybe", `error 4:11 thinking is "maybe"`},
		{"maxTurns: many", "error 4:11 maxTurns is no whole number from 1 to 1000000"},
		{"maxTurns: 0", "error 4:11 maxTurns is no whole number from 1 to 1000000"},
		{"maxTurns: 3\nsteps: 3", "error 5:1 steps says the same as maxTurns"},
		{"timeoutSeconds: -1", "error 4:17 timeoutSeconds is no whole number from 0 to 31536000"},
		{"timeoutSeconds: '60'", "error 4:17 timeoutSeconds is no whole number from 0 to 31536000"},
		{"temperature: 3", "error 4:14 temperature is no number from 0 to 2"},
		{"visibility: hidden", `error 4:13 visibility is "hidden"`},
		{"skills: 3", "error 4:9 skills is a whole number"},
		{"emitStructuredFindings: 1", "error 4:25 emitStructuredFindings is a whole number"},
		{"visibility: user-facing\ntools: Read, Bash", "error 5:8 a user-facing definition may not have exec"},
		{"goclaw: 1", "error 4:9 goclaw is a whole number, not a map"},
		{"goclaw: {version: 2}", "error 4:19 version is no whole number from 1 to 1"},
		{"goclaw: {promtMode: none}", `error 4:10 unknown key "promtMode" in goclaw`},
		{"goclaw: {promptMode: full}", `error 4:22 promptMode is "full"`},
		{"goclaw: {inherit: [../x]}", `error 4:20 inherit holds "../x", which is no file at the workspace's root`},
		{"goclaw: {input: {type: 3}}", "error 4:24 input is no valid JSON Schema: \"type\" can't be 3"},
		{"goclaw:\n  input:\n    properties:\n      a/b: {type: string}\n      c: [string]", "error 8:10 input is no valid JSON Schema: [\"string\"] is no schema; write a map"},
		{"goclaw:\n  output:\n    format: json\n    schema:\n      anyOf: [{type: objct}]", "error 8:22 schema is no valid JSON Schema: \"type\" can't be \"objct\""},
		{"goclaw: {input: {type: object, requird: [a]}}", "error 4:41 input is no valid JSON Schema: \"requird\" is no keyword of JSON Schema; did you mean \"required\"?"},
		{"goclaw: {input: {properties: {a: {type: integer, default: x}}}}", "error 4:17 input is no valid JSON Schema: JSON Schema: a default does not fit its schema: "},
		{"goclaw: {input: {$ref: '#'}}", "error 4:17 input is no valid JSON Schema: JSON Schema: a $ref leads back to itself"},
		{"goclaw: {output: {format: json, schema: {properties: {a: {$ref: '#/x'}}}}}", "error 4:41 schema is no valid JSON Schema: JSON Schema: $ref \"#/x\" leads nowhere"},
		{"goclaw: {output: {format: json, schema: {properties: {a: {pattern: '('}}}}}", "error 4:41 schema is no valid JSON Schema"},
		{"emitStructuredFindings: true\ngoclaw: {output: {format: xml, tag: findings}}", "error 5:32 the tag findings is where emitStructuredFindings has its own"},
		{"goclaw: {context: {file: a}}", "error 4:19 context is a map, not a list"},
		{"goclaw: {context: [{file: a, glob: b}]}", "error 4:20 a slice has 2 sources"},
		{"goclaw: {context: [{tag: a}]}", "error 4:20 a slice has 0 sources"},
		{"goclaw: {context: [{file: /etc/passwd}]}", `error 4:27 file "/etc/passwd" is no path inside the workspace`},
		{"goclaw: {context: [{file: a, tag: 'a b'}]}", `error 4:35 tag "a b" is no XML name`},
		{"goclaw: {output: {tag: a}}", "error 4:18 output has no format"},
		{"goclaw: {output: {format: xml}}", "error 4:18 output of the format xml has no tag"},
		{"goclaw: {output: {format: json, tag: a}}", "error 4:33 output of the format json has a tag"},
		{"goclaw: {artifacts: [{min: 1}]}", "error 4:22 an artifact has no path"},
		{"goclaw: {limits: {contextPercent: 101}}", "error 4:35 contextPercent is no whole number from 1 to 100"},
		{"goclaw: {limits: {onLimit: explode}}", `error 4:28 onLimit is "explode"`},
	} {
		t.Run(tc.line, func(t *testing.T) {
			d := parse(tc.line)
			if got := problems(d); !strings.HasPrefix(got, tc.want) || d.Status != definition.StatusRejected {
				t.Errorf("%s\ngot  %s\nwant %s", d.Status, got, tc.want)
			}
			for _, p := range d.Problems {
				if p.Hint == "" {
					t.Errorf("no hint: %s", p.Message)
				}
			}
			if d.Blocked() == "" {
				t.Error("not blocked")
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct{ name, path, file, want, problems string }{
		{"as written", "x.md", "name: Code Reviewer\ndescription: d", "Code Reviewer", `warning 2:7 the name "Code Reviewer" is no slug`},
		{"missing", "x.md", "description: d", "x", "error 1:1 the key name is missing"},
		{"empty", "x.md", "name:\ndescription: d", "x", "error 1:1 the key name is missing"},
		{"a list", "x.md", "name: [a]\ndescription: d", "x", "error 2:7 name is a list"},
		{"a number", "x.md", "name: 7\ndescription: d", "7", ""},
		{"no letters", "x.md", "name: '!!'\ndescription: d", "x", "error 2:7 name holds no letter and no digit"},
		{"two lines", "x.md", "name: |\n  a\n  b\ndescription: d", "x", "error 2:7 name is longer than 100 characters or has several lines"},
		{"no description", "x.md", "name: a", "a", "error 1:1 the key description is missing"},
		{"an empty description", "x.md", "name: a\ndescription: ' '", "a", "error 3:14 description is empty"},
		{"a list as description", "x.md", "name: a\ndescription: [b]", "a", "error 3:14 description is a list, not a text"},
		{"OpenCode by its mode", "dir/x.md", "description: d\nmode: subagent", "x", "notice 1:1 no name; the file's is taken: x"},
		{"OpenCode by its tools", "x.md", "description: d\ntools: {write: false}", "x", "notice 1:1 no name; the file's is taken: x"},
		{"OpenCode by its folder", "/w/.opencode/agent/x.md", "description: d", "x", "notice 1:1 no name; the file's is taken: x"},
		{"Copilot's agent", "x.agent.md", "description: d", "x", "notice 1:1 no name; the file's is taken: x"},
		{"Copilot's chat mode", "x.chatmode.md", "description: d", "x", "notice 1:1 no name; the file's is taken: x"},
		{"broken", "x.md", "name: scout\ndescription: [d", "scout", "error 3:14 not valid YAML: sequence end token ']' not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := definition.Parse(tc.path, []byte("---\n"+tc.file+"\n---\nbody\n"), definition.Options{})
			if d.Name != tc.want || problems(d) != tc.problems {
				t.Errorf("name %q, problems:\n%s", d.Name, problems(d))
			}
		})
	}
}

func TestNoticesAndWarnings(t *testing.T) {
	for _, tc := range []struct {
		line   string
		status definition.Status
		want   string
	}{
		{"color: red\nemoji: x\nhidden: true", definition.StatusOK, "notice 4:1 ignored: color, emoji, hidden"},
		{"model: [a, b]", definition.StatusOK, "notice 4:8 of several models the first is taken"},
		{"mode: primary", definition.StatusOK, "notice 4:7 mode primary: it is no worker, so it can't be spawned"},
		{"thinking: xhigh", definition.StatusOK, "notice 4:11 thinking xhigh is taken as high"},
		{"mcp-servers: {x: {url: y}}", definition.StatusOK, "notice 4:1 MCP servers are not started from here: x"},
		{"tools: Read Grep", definition.StatusWarning, "warning 4:8 tools is separated by blanks"},
		{"permissions: {bash: deny}", definition.StatusWarning, "warning 4:1 permissions is read as permission"},
		{"tools: Read\ndisallowedTools: Read", definition.StatusWarning, "warning 4:8 every tool that it lists is denied as well"},
		{"tools: mcp__x__y", definition.StatusDegraded, "degraded 4:8 needs tools that are not there: mcp__x__y"},
		{"tools: ['github/*', read]", definition.StatusDegraded, "degraded 4:9 needs tools that are not there: github/*"},
		{"tools: [read, azure_query_learn]", definition.StatusDegraded, "degraded 4:15 needs tools that are not there: azure_query_learn"},
		{"tools: codebase, documentation", definition.StatusDegraded, "degraded 4:18 needs tools that are not there: documentation"},
		{"tools: WebFetch(domain:x)", definition.StatusDegraded, "degraded 4:8 patterns are not enforced for web_fetch"},
		{"tools: Edit(src/**)", definition.StatusOK, ""},
		{"tools: Grep(src/**)", definition.StatusDegraded, "degraded 4:8 patterns are not enforced for grep"},
		{"memory: user\ncolor: red\nbackground: true\ntop_p: 1", definition.StatusOK, "notice 4:1 not done here: memory, background, top_p\nnotice 5:1 ignored: color"},
		{"hooks: {Stop: [{hooks: []}], PreToolUse: []}", definition.StatusOK, "notice 4:1 not done here: hooks"},
		{"hooks: {pre: 'echo'}", definition.StatusOK, "notice 4:1 not done here: hooks"},
		{"hooks: {Stop: [], PreToolUse: [{matcher: Bash}]}", definition.StatusDegraded, "degraded 4:19 hooks are not run here, and what the hook PreToolUse would refuse would be allowed"},
		{"isolation: worktree", definition.StatusDegraded, "degraded 4:12 isolation: worktree is not done here: it would change the workspace's own files"},
		{"isolation: worktree\ntools: Read", definition.StatusOK, "notice 4:1 not done here: isolation"},
		{"permissionMode: acceptEdits", definition.StatusOK, "notice 4:1 not done here: permissionMode"},
		{"permissionMode: plan\ntools: Read, Bash", definition.StatusWarning, "warning 4:17 plan mode denies write and edit; commands (exec) can still change files"},
		{"disabled: true", definition.StatusDegraded, "degraded 4:1 the file switches itself off (disabled)"},
		{"enabled: false", definition.StatusDegraded, "degraded 4:1 the file switches itself off (enabled)"},
		{"enabled: true", definition.StatusOK, ""},
		{"skills:\nmaxTurns:", definition.StatusWarning, "warning 4:8 skills is empty, as if it were not there\nwarning 5:10 maxTurns is empty, as if it were not there"},
		{"tools: Read, Workflow, Artifact", definition.StatusOK, "notice 4:14 no counterpart here, left out: Artifact, Workflow"},
		{"tools: Read, LookIntoThings", definition.StatusDegraded, "degraded 4:14 needs tools that are not there: LookIntoThings"},
		{"tools: Read/Write", definition.StatusDegraded, "degraded 4:8 needs tools that are not there: Read/Write"},
		{"permission: {webfetch: ask, edit: ask}", definition.StatusWarning, "warning 4:13 nobody can be asked before a call, so these are denied: edit, web_fetch, write"},
		{"permission: {'gitnexus_*': allow, 'mcp_*': deny}", definition.StatusOK, ""},
		{"permissions: [{action: edit, resource: '*', effect: deny}]", definition.StatusOK, ""},
		{"disable: true", definition.StatusDegraded, "degraded 4:1 the file switches itself off (disable)"},
		{"disable-model-invocation: true", definition.StatusOK, "notice 4:1 disable-model-invocation is read as visibility: internal"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			if d := parse(tc.line); problems(d) != tc.want || d.Status != tc.status {
				t.Errorf("%s: %s", d.Status, problems(d))
			}
		})
	}
}

func TestWhatIsThere(t *testing.T) {
	opts := definition.Options{Available: []string{"read", "grep", "mcp__x__y"}, UserFacingTools: []string{"read", "exec", "mcp__*"}}
	for _, tc := range []struct {
		line   string
		status definition.Status
		tools  []string
	}{
		{"tools: mcp__x__y, read", definition.StatusOK, []string{"mcp__x__y", "read"}},
		{"tools: mcp__x__z, read", definition.StatusDegraded, []string{"mcp__x__z", "read"}},
		{"tools: read, write", definition.StatusWarning, []string{"read", "write"}},
		{"tools: write", definition.StatusDegraded, []string{"write"}},
		{"visibility: user-facing\ntools: mcp__x__y, read", definition.StatusOK, []string{"mcp__x__y", "read"}},
		{"visibility: user-facing\ntools: grep", definition.StatusRejected, []string{"grep"}},
		{"visibility: user-facing", definition.StatusWarning, []string{"exec", "read"}},
	} {
		d := definition.Parse("scout.md", file(tc.line), opts)
		if d.Status != tc.status || !slices.Equal(d.AllowedTools(), tc.tools) {
			t.Errorf("%s: %s %v: %s", tc.line, d.Status, d.AllowedTools(), problems(d))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("tools: Read, Bash(git:*)", "permission: {bash: {'*': deny}}"))
	f.Add(file("goclaw: {context: [{file: a}], output: {format: json, schema: {type: object}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := definition.Parse("x.md", data, definition.Options{})
		if d.Name == "" || d.Status == "" || d.SHA256 == "" {
			t.Fatalf("incomplete: %+v", d)
		}
		if (d.Status == definition.StatusRejected || d.Status == definition.StatusDegraded) != (d.Blocked() != "") {
			t.Fatalf("%s, blocked: %q", d.Status, d.Blocked())
		}
		for _, p := range d.Problems {
			if p.Line < 1 || p.Col < 1 || p.Message == "" || p.Hint == "" {
				t.Fatalf("no good problem: %+v", p)
			}
		}
		for _, tool := range d.ResolvedTools() {
			if slices.Contains(d.DeniedTools(), tool) {
				t.Fatalf("%s is denied", tool)
			}
		}
	})
}
