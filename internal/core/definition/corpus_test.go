package definition_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/core/definition"
)

// corpus calls check with every real definition file.
func corpus(t *testing.T, check func(path string, data []byte)) {
	t.Helper()
	dir := os.Getenv("GOCLAW_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	dir = filepath.Join(dir, "agents")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no corpus: set GOCLAW_CORPUS to its folder")
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			check(path, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCorpusLoads(t *testing.T) {
	count := map[definition.Status]int{}
	total := 0
	corpus(t, func(path string, data []byte) {
		d := definition.Parse(path, data, definition.Options{})
		count[d.Status]++
		total++
		if !strings.HasSuffix(string(data), d.Body) {
			t.Errorf("%s: the body is not the file's end", path)
		}
		if d.Status == definition.StatusRejected {
			t.Log(d.Blocked())
		}
	})
	t.Logf("%d files: %v", total, count)
	if total >= 300 && 30*count[definition.StatusRejected] > total {
		t.Errorf("%d of %d files are rejected", count[definition.StatusRejected], total)
	}
}

// What follows reads tool lists in another way than the loader: line by line,
// with patterns, and a table of its own that is written from the specification.
var (
	headOf   = regexp.MustCompile(`(?s)^(?:\x{feff})?---[ \t]*\r?\n(.*?)\n---[ \t]*\r?(?:\n|$)`)
	topKey   = regexp.MustCompile(`^([A-Za-z][\w-]*):`)
	boolItem = regexp.MustCompile(`^\s+"?([\w*-]+)"?:\s*(true|false)\s*$`)

	translation = map[string]string{
		"read": "read", "read_file": "read", "view": "read", "file_read": "read", "readfile": "read",
		"write": "write", "write_file": "write", "createfile": "write", "writefile": "write",
		"edit": "edit", "multiedit": "edit", "replace": "edit", "editfiles": "edit", "patch": "apply_patch",
		"bash": "exec", "run_shell_command": "exec", "runcommands": "exec", "execute": "exec", "shell": "exec",
		"terminalcommand": "exec", "runinterminal": "exec", "exec": "exec",
		"grep": "grep", "grep_search": "grep", "search": "grep", "codebase": "grep",
		"glob": "glob", "find": "glob", "ls": "ls", "list_directory": "ls",
		"websearch": "web_search", "google_web_search": "web_search", "web_search": "web_search",
		"webfetch": "web_fetch", "fetch": "web_fetch", "web_fetch": "web_fetch", "web": "web_search web_fetch",
		"task": "sessions_spawn", "agent": "sessions_spawn", "invoke_agent": "sessions_spawn", "spawn_agent": "spawn_agent",
		"attach_file": "attach_file", "todo": "",
	}
	sets = []string{"edit/", "search/", "web/", "read/", "execute/", "vscode/", "agent/", "runcommands/"}
)

// key returns the lines that belong to a top-level key.
func key(head, name string) (lines []string, ok bool) {
	in := false
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, "\r\n")
		if m := topKey.FindStringSubmatch(line); m != nil {
			in = m[1] == name
			if in {
				ok = true
				line = strings.TrimPrefix(line, name+":")
			}
		}
		if in && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	return lines, ok
}

// translated are the tools that a name stands for, by the table above.
func translated(name string) []string {
	name = strings.ToLower(name)
	for _, s := range sets {
		if leaf, ok := strings.CutPrefix(name, s); ok {
			name = leaf
		}
	}
	return strings.Fields(translation[name])
}

// readTools are the allowed and denied tools of a file by this reading; any is
// true for the star.
func readTools(head string) (allow, deny []string, listed, any bool) {
	lines, listed := key(head, "tools")
	if !listed {
		lines, listed = key(head, "allowedTools")
	}
	isMap := false
	for _, l := range lines {
		if m := boolItem.FindStringSubmatch(l); m != nil {
			isMap = true
			if m[2] == "true" {
				allow = append(allow, translated(m[1])...)
			} else {
				deny = append(deny, translated(m[1])...)
			}
		}
	}
	if !isMap {
		flat := regexp.MustCompile(`(?m)^\s*-\s+`).ReplaceAllString(strings.Join(lines, "\n"), ",")
		for item := range strings.SplitSeq(strings.NewReplacer("[", ",", "]", ",", "\n", ",", `"`, "", "'", "").Replace(flat), ",") {
			item = strings.TrimSpace(item)
			any = any || item == "*"
			allow = append(allow, translated(item)...)
		}
	}
	if isMap && len(allow) == 0 {
		listed = false
	}
	return allow, deny, listed, any
}

// denials are the tools that permissions deny in whole, by this reading.
func denials(head string) []string {
	lines, ok := key(head, "permission")
	if !ok {
		lines, _ = key(head, "permissions")
	}
	said := map[string][]string{} // by tool, the patterns with their actions
	tool := ""
	for _, l := range lines {
		body := strings.TrimSpace(l)
		if len(l)-len(strings.TrimLeft(l, " ")) <= 2 {
			var action string
			if tool, action, _ = strings.Cut(body, ":"); strings.TrimSpace(action) != "" {
				said[tool] = []string{`"*": ` + action}
			}
			continue
		}
		said[tool] = append(said[tool], body)
	}
	var out []string
	whole := func(l string) bool { return strings.HasPrefix(l, `"*"`) || strings.HasPrefix(l, `"**/*":`) }
	denies := func(l string) bool { return strings.Contains(l, "deny") }
	for tool, patterns := range said {
		if slices.ContainsFunc(patterns, whole) && !slices.ContainsFunc(patterns, func(l string) bool { return !denies(l) }) {
			out = append(out, translated(tool)...)
		}
	}
	return out
}

func TestCorpusToolSets(t *testing.T) {
	lists, denied := 0, 0
	corpus(t, func(path string, data []byte) {
		d := definition.Parse(path, data, definition.Options{})
		if d.Status == definition.StatusRejected {
			return
		}
		m := headOf.FindSubmatch(data)
		if m == nil {
			t.Errorf("%s: loaded, but has no frontmatter by the other reading", path)
			return
		}
		head := string(m[1])
		allow, deny, listed, any := readTools(head)
		deny = append(deny, denials(head)...)
		if more, ok := key(head, "disallowedTools"); ok {
			for item := range strings.SplitSeq(strings.Trim(strings.Join(more, ","), " []"), ",") {
				deny = append(deny, translated(strings.TrimSpace(item))...)
			}
		}
		for _, tool := range deny {
			denied++
			if !slices.Contains(d.DeniedTools(), tool) || slices.Contains(d.ResolvedTools(), tool) {
				t.Errorf("%s: the denial of %s is lost: %v", path, tool, d.DeniedTools())
			}
		}
		if any {
			return
		}
		if listed != (d.AllowedTools() != nil) {
			t.Errorf("%s: listed %v, but the loader's list is %v", path, listed, d.AllowedTools())
			return
		}
		if !listed {
			return
		}
		lists++
		own := slices.DeleteFunc(slices.Clone(d.AllowedTools()), func(tool string) bool { return strings.ContainsAny(tool, "/. ") || !known(tool) })
		want := slices.DeleteFunc(allow, func(tool string) bool { return slices.Contains(d.DeniedTools(), tool) })
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(own, want) {
			t.Errorf("%s:\nloader %v\nother  %v", path, own, want)
		}
	})
	t.Logf("%d lists and %d denials compared", lists, denied)
}

// known reports whether the table above leads to a tool.
func known(tool string) bool {
	for _, tools := range translation {
		if slices.Contains(strings.Fields(tools), tool) {
			return true
		}
	}
	return false
}
