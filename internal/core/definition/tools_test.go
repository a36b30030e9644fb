package definition_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/internal/core/definition"
)

func TestToolLists(t *testing.T) {
	for _, tc := range []struct{ name, line, allow, deny string }{
		{"none given", "color: red", "the worker set", ""},
		{"none", "tools: []", "", ""},
		{"a list", "tools: [Read, Bash]", "exec read", ""},
		{"a comma string", "tools: Read, Bash, ", "exec read", ""},
		{"lines", "tools: |\n  Read\n  Bash", "exec read", ""},
		{"case aside", "tools: READ, bash, websearch, ls, multiedit", "edit exec ls read web_search", ""},
		{"Gemini's", "tools: [read_file, write_file, replace, grep_search, list_directory, google_web_search, run_shell_command, invoke_agent]", "edit exec grep ls read sessions_spawn web_search write", ""},
		{"Copilot's", "tools: ['edit/editFiles', 'search/codebase', 'web/fetch', 'read/problems', 'execute/runInTerminal', agent]", "edit exec grep sessions_spawn web_fetch", ""},
		{"Netclaw's", "tools: [web_search, web_fetch, file_read, attach_file]", "attach_file read web_fetch web_search", ""},
		{"our own, by a pattern", "tools: web_*, artifact_*", "artifact_list artifact_read artifact_write web_fetch web_search", ""},
		{"what is dropped", "tools: Read, TodoWrite, ExitPlanMode", "read", ""},
		{"all", "tools: ['*']", "the worker set", ""},
		{"all and one more", "tools: ['*', Task]", "artifact_list artifact_read artifact_write attach_file edit exec glob grep ls read sessions_spawn web_fetch web_search write", ""},
		{"a map of some", "tools: {read: true, bash: true, write: false}", "exec read", "write"},
		{"a map of denials", "tools: {write: false, edit: false}", "the worker set", "edit write"},
		{"a map that begins with none", "tools: {'*': false, read: true}", "read", ""},
		{"a map of none", "tools: {'*': false}", "", ""},
		{"a map of all but", "tools: {'*': true, bash: false}", "the worker set", "exec"},
		{"denied", "disallowedTools: Bash, WebFetch", "the worker set", "exec web_fetch"},
		{"denied, by other names", "disallowed-tools: [NotebookEdit, mcp__x__y, Write]", "the worker set", "NotebookEdit mcp__x__y write"},
		{"allowed and denied", "tools: Read, Bash\ndisallowedTools: Bash", "read", "exec"},
		{"all denied", "tools: Read\ndisallowedTools: '*'", "", "*"},
		{"allowedTools", "allowedTools: [read, shell]", "exec read", ""},
		{"plan mode", "permissionMode: plan", "the worker set", "apply_patch edit write"},
		{"read only", "readonly: true\ntools: Read, Write", "read", "apply_patch edit exec write"},
		{"a permission", "permission: {edit: deny, webfetch: deny, bash: allow}", "the worker set", "apply_patch edit web_fetch write"},
		{"a permission for all", "permission: deny", "", ""},
		{"a permission for some", "permission: {'*': deny, read: allow, bash: {'git *': allow}}", "exec read", ""},
		{"a permission never widens", "tools: Read\npermission: {'*': deny, read: allow, bash: allow}", "read", ""},
		{"a permission by patterns that are all", "permission: {edit: {'**/*': deny}, task: {'*': deny}}", "the worker set", "apply_patch edit sessions_spawn write"},
		{"a permission for some commands of one tool", "permission: {'*': deny, bash: {'git *': allow}, edit: {'src/*': deny}}", "exec", "apply_patch edit write"},
		{"a permission by a pattern of names", "permission: {'web*': deny, 'x_*': deny}", "the worker set", "web_fetch web_search x_*"},
		{"OpenCode 2's rules", "permissions: [{action: '*', resource: '*', effect: deny}, {action: shell, resource: '*', effect: allow}, {action: read, effect: allow}]", "exec read", ""},
		{"rules, the last for all", "permissions: [{action: shell, effect: allow}, {action: '*', effect: deny}]", "", "exec"},
		{"rules, a denial is not lost", "permissions: [{action: subagent, effect: deny}, {action: edit, effect: deny}, {action: '*', effect: allow}]", "the worker set", "apply_patch edit sessions_spawn write"},
		{"rules, one tool anew", "permissions: [{action: webfetch, effect: deny}, {action: webfetch, effect: allow}]", "the worker set", ""},
		{"read only in others' spelling", "readOnly: true\ntools: Read, Write", "read", "apply_patch edit exec write"},
		{"Claude's settings", "permission: {allow: [Read], deny: ['Bash', 'WebFetch(domain:x)']}", "the worker set", "exec"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := parse(tc.line)
			allow := strings.Join(d.AllowedTools(), " ")
			if d.AllowedTools() == nil {
				allow = "the worker set"
			}
			if deny := strings.Join(d.DeniedTools(), " "); allow != tc.allow || deny != tc.deny || d.Status == definition.StatusRejected {
				t.Errorf("%s, allow %q, deny %q\n%s", d.Status, allow, deny, problems(d))
			}
		})
	}
}

func TestRules(t *testing.T) {
	for _, tc := range []struct {
		line  string
		calls map[string]definition.Action // of exec
	}{
		{"tools: Bash(git:*), Bash(go test ./...)", map[string]definition.Action{
			"git": "allow", "git log -1": "allow", "gitk": "deny", "go test ./...": "allow", "rm x": "deny",
		}},
		{"tools: Bash, Bash(git:*)", map[string]definition.Action{"rm x": "allow"}},
		{"tools: Bash(*)", map[string]definition.Action{"rm x": "allow"}},
		{"tools: 'Bash(git add:*, git commit:*)'", map[string]definition.Action{"git add x": "allow", "git commit": "allow", "git push": "deny"}},
		{"tools: Bash(git push:*)\ndisallowedTools: Bash(git:*)", map[string]definition.Action{"git push": "deny"}},
		{"disallowedTools: Bash(rm:*)\npermission: {bash: {'rm -i *': allow}}", map[string]definition.Action{"rm -i x": "deny"}},
		{"disallowedTools: Bash(rm:*)", map[string]definition.Action{"rm -r x": "deny", "ls": "allow"}},
		{"permission: {bash: {'*': deny, 'git *': allow, 'git push*': deny}}", map[string]definition.Action{"ls": "deny", "git log": "allow", "git push x": "deny"}},
		{"permission: {bash: {'git *': allow, '*': deny}}", map[string]definition.Action{"ls": "deny", "git log": "allow"}},
		{"permission: {'*': deny, bash: {'git *': allow}}", map[string]definition.Action{"git log": "allow", "git": "allow", "rm x": "deny"}},
		{"permission: {'*': ask, bash: {'git *': allow}}", map[string]definition.Action{"git log": "allow", "rm x": "ask"}},
		{"permission: {bash: {'git push *': deny, 'rm ?r*': deny}}", map[string]definition.Action{"git push": "deny", "git push x": "deny", "rm -r": "deny", "git pushx": "allow"}},
		{"permissions: [{action: shell, resource: '*', effect: ask}, {action: shell, resource: 'git *', effect: allow}, {action: shell, resource: 'git push *', effect: deny}]",
			map[string]definition.Action{"ls": "ask", "git log": "allow", "git push": "deny"}},
		{"permissions: [{action: shell, resource: 'git *', effect: allow}, {action: shell, resource: '*', effect: ask}]", map[string]definition.Action{"ls": "ask", "git log": "ask"}},
		{"permissions: [{action: shell, resource: 'git push*', effect: deny}, {action: shell, resource: '*', effect: allow}]", map[string]definition.Action{"ls": "allow", "git push": "deny"}},
		{"permission: {bash: ask}", map[string]definition.Action{"ls": "ask"}},
		{"permission: {bash: {'*': ask, ls: allow}}", map[string]definition.Action{"ls": "allow", "rm x": "ask"}},
	} {
		d := parse(tc.line)
		if d.Blocked() != "" {
			t.Errorf("%s: %s", tc.line, problems(d))
		}
		for call, want := range tc.calls {
			if got := d.Tools.Decide("exec", call); got != want {
				t.Errorf("%s: %q is %s, want %s", tc.line, call, got, want)
			}
		}
	}
	for _, tc := range []struct {
		line   string
		writes map[string]definition.Action
	}{
		{"permission: {edit: {'*': deny, 'docs/*': allow, ./notes/*.md: allow}}", map[string]definition.Action{"docs/a/b.md": "allow", "notes/x.md": "allow", "src/x": "deny", "docs": "deny"}},
		{"disallowedTools: Edit(secrets), Edit(.env), Edit(gen/)", map[string]definition.Action{"secrets/a/b": "deny", "a/.env": "deny", "a/secrets/b": "deny", "gen/x": "deny", "a/gen.go": "allow"}},
		{"permission: {write: {'*.key': deny}}", map[string]definition.Action{"a/b.key": "deny", "b.go": "allow"}},
		{"permission: {edit: {'*.lock': ask}}", map[string]definition.Action{"a/b.lock": "ask", "b.locks": "allow"}},
	} {
		d := parse(tc.line)
		if d.Blocked() != "" {
			t.Errorf("%s: %s", tc.line, problems(d))
		}
		for _, tool := range []string{"edit", "write"} {
			for place, want := range tc.writes {
				if got := d.Tools.Decide(tool, place); got != want {
					t.Errorf("%s: %s of %q is %s, want %s", tc.line, tool, place, got, want)
				}
			}
		}
	}
	all := definition.Options{Enforced: []string{"exec", "edit", "write", "apply_patch"}}
	d := definition.Parse("x.md", file("permission: {edit: {'**/*.env*': deny, 'docs/*': allow}}"), all)
	if d.Status != definition.StatusOK {
		t.Fatal(problems(d))
	}
	for path, want := range map[string]definition.Action{".env": "deny", "a/.env.local": "deny", "a/../.env": "deny", "docs/x.md": "allow", "x": "allow"} {
		if got := d.Tools.Decide("write", path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// Whatever a list holds, it never gives a tool that stands under no name of it,
// an explicit list is never the worker set, and what is denied is never given.
func TestListsNeverWiden(t *testing.T) {
	names := map[string][]string{
		"Read": {"read"}, "bash": {"exec"}, "MultiEdit": {"edit"}, "web": {"web_fetch", "web_search"}, "TodoWrite": nil,
		"githubRepo": nil, "mcp__a__b": {"mcp__a__b"}, "x/y": {"x/y"}, "Bash(git:*)": {"exec"}, "Agent": {"sessions_spawn"},
	}
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	rapid.Check(t, func(t *rapid.T) {
		listed := rapid.SliceOfN(rapid.SampledFrom(keys), 1, 6).Draw(t, "tools")
		denied := rapid.SliceOfN(rapid.SampledFrom(keys), 0, 3).Draw(t, "denied")
		lines := []string{"tools: [" + strings.Join(listed, ", ") + "]"}
		if rapid.Bool().Draw(t, "as a string") {
			lines = []string{"tools: " + strings.Join(listed, ", ")}
		}
		if len(denied) > 0 {
			lines = append(lines, "disallowedTools: "+strings.Join(denied, ", "))
		}
		d := parse(lines...)
		var most []string
		for _, l := range listed {
			most = append(most, names[l]...)
		}
		if len(most) == 0 {
			if d.Status != definition.StatusRejected {
				t.Fatalf("nothing is left of %v, and it is %s", listed, d.Status)
			}
			return
		}
		if d.Status == definition.StatusRejected || d.AllowedTools() == nil {
			t.Fatalf("%v: %s, %v: %s", lines, d.Status, d.AllowedTools(), problems(d))
		}
		for _, tool := range d.AllowedTools() {
			if !slices.Contains(most, tool) {
				t.Fatalf("%v gives %s", lines, tool)
			}
		}
		for _, l := range denied {
			if strings.Contains(l, "(") {
				if slices.Contains(d.AllowedTools(), "exec") && d.Tools.Decide("exec", "git push") != definition.Deny {
					t.Fatalf("%v: the denied command is allowed", lines)
				}
				continue
			}
			for _, tool := range names[l] {
				if slices.Contains(d.ResolvedTools(), tool) || !slices.Contains(d.DeniedTools(), tool) {
					t.Fatalf("%v: %s is not denied", lines, tool)
				}
			}
		}
	})
}

// OpenCode 2's rules never allow a call that OpenCode, where the last rule that
// matches counts, would not allow; and what is denied last stays denied.
func TestOrderedRulesNeverWiden(t *testing.T) {
	patterns := []string{"*", "git *", "git push *", "*push*", "*it*", "go test", "g*t"}
	calls := []string{"git", "git log", "git push", "git push x", "go test", "rm push", "x"}
	match := func(pattern, call string) bool {
		if command, ok := strings.CutSuffix(pattern, " *"); ok && command == call {
			return true
		}
		expr := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		return regexp.MustCompile(expr).MatchString(call)
	}
	rapid.Check(t, func(t *rapid.T) {
		type rule struct{ action, resource, effect string }
		var rules []rule
		lines := []string{"permissions:"}
		for range rapid.IntRange(1, 5).Draw(t, "rules") {
			r := rule{
				rapid.SampledFrom([]string{"shell", "shell", "*", "read"}).Draw(t, "action"),
				rapid.SampledFrom(patterns).Draw(t, "resource"),
				rapid.SampledFrom([]string{"allow", "deny", "ask"}).Draw(t, "effect"),
			}
			if r.action != "shell" {
				r.resource = "*"
			}
			rules = append(rules, r)
			lines = append(lines, "  - {action: '"+r.action+"', resource: '"+r.resource+"', effect: "+r.effect+"}")
		}
		d := parse(lines...)
		if d.Blocked() != "" {
			t.Fatal(problems(d))
		}
		for _, call := range calls {
			want := "allow"
			for _, r := range rules {
				if (r.action == "shell" || r.action == "*") && match(r.resource, call) {
					want = r.effect
				}
			}
			got := "deny"
			if slices.Contains(d.ResolvedTools(), "exec") {
				got = string(d.Tools.Decide("exec", call))
			}
			if got == "allow" && want != "allow" {
				t.Fatalf("%s\n%q is allowed; the rules say %s\n%+v", strings.Join(lines, "\n"), call, want, d.Tools)
			}
		}
	})
}

func FuzzToolList(f *testing.F) {
	f.Add("Read, Bash(git:*), mcp__a__b")
	f.Add("Microsoft Docs, 'x/y', *, (,)")
	f.Fuzz(func(t *testing.T, list string) {
		line := "tools: '" + strings.NewReplacer("'", "''", "\n", " ", "\r", " ").Replace(list) + "'"
		d := parse(line)
		if d.Status == definition.StatusRejected {
			return
		}
		star := strings.Contains(list, "*") || strings.Contains(strings.ToLower(list), "all")
		if d.AllowedTools() == nil && !star {
			t.Fatalf("%q became the worker set", list)
		}
		if len(d.AllowedTools()) == 0 && !star {
			t.Fatalf("%q became nothing and was not rejected", list)
		}
	})
}
