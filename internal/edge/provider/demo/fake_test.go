package demo

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"goclaw"
)

// fakeTools runs tool calls on a folder, with the argument names and output
// forms of the real tools.
type fakeTools struct {
	dir   string
	spawn func(args map[string]any) goclaw.ToolResult
	fail  map[string]string // tool name to the error that it gives
	calls []goclaw.ToolCall
}

func offered(names ...string) []goclaw.ToolSpec {
	var specs []goclaw.ToolSpec
	for _, n := range names {
		specs = append(specs, goclaw.ToolSpec{Name: n})
	}
	return specs
}

func allTools() []goclaw.ToolSpec {
	return offered("edit", "exec", "glob", "grep", "ls", "read", "session_status", "sessions_spawn", "subagents", "write")
}

func (f *fakeTools) run(t *testing.T, c goclaw.ToolCall) goclaw.ToolResult {
	t.Helper()
	f.calls = append(f.calls, c)
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
		t.Fatalf("%s: arguments %q: %v", c.Name, c.Arguments, err)
	}
	res := f.result(t, c.Name, args)
	if msg := f.fail[c.Name]; msg != "" {
		res = goclaw.ToolError(msg)
	}
	res.CallID, res.Name = c.ID, c.Name
	return res
}

func (f *fakeTools) result(t *testing.T, tool string, args map[string]any) goclaw.ToolResult {
	str := func(name string) string { s, _ := args[name].(string); return s }
	path := filepath.Join(f.dir, filepath.FromSlash(str("path")))
	switch tool {
	case "read":
		data, err := os.ReadFile(path)
		if err != nil {
			return goclaw.ToolError(str("path") + " does not exist")
		}
		if strings.TrimSpace(string(data)) == "" {
			return goclaw.ToolOK("[empty file]")
		}
		var b strings.Builder
		for i, l := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if i == 2000 {
				b.WriteString("[more lines follow; read with offset 2001]\n")
				break
			}
			fmt.Fprintf(&b, "%5d\t%s\n", i+1, l)
		}
		return goclaw.ToolOK(b.String())
	case "write":
		return wrote(os.WriteFile(path, []byte(str("content")), 0o600))
	case "edit":
		data, err := os.ReadFile(path)
		if err != nil || strings.Count(string(data), str("old")) != 1 {
			return goclaw.ToolError("old must occur exactly once")
		}
		return wrote(os.WriteFile(path, []byte(strings.Replace(string(data), str("old"), str("new"), 1)), 0o600))
	case "glob":
		return goclaw.ToolOK(strings.Join(f.files(t), "\n"))
	case "grep":
		return f.grep(t, regexp.MustCompile(str("pattern")))
	case "sessions_spawn":
		return f.spawn(args)
	}
	return goclaw.ToolOK(tool + " was called with " + fmt.Sprint(args))
}

func wrote(err error) goclaw.ToolResult {
	if err != nil {
		return goclaw.ToolError(err.Error())
	}
	return goclaw.ToolOK("ok")
}

func (f *fakeTools) grep(t *testing.T, re *regexp.Regexp) goclaw.ToolResult {
	var b strings.Builder
	for _, name := range f.files(t) {
		data, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range strings.Split(string(data), "\n") {
			if re.MatchString(l) {
				fmt.Fprintf(&b, "%s:%d: %s\n", name, i+1, l)
			}
		}
	}
	if b.Len() == 0 {
		return goclaw.ToolOK("no matches")
	}
	return goclaw.ToolOK(b.String())
}

func (f *fakeTools) files(t *testing.T) []string {
	var names []string
	err := filepath.WalkDir(f.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(f.dir, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// converse goes on until the model answers without a call.
func converse(t *testing.T, f *fakeTools, tools []goclaw.ToolSpec, msgs ...goclaw.Message) (string, []goclaw.Message) {
	t.Helper()
	for range 10 {
		reply, err := New().Stream(t.Context(), goclaw.ModelRequest{Model: Model, Tools: tools, Messages: msgs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, reply.Message)
		calls := reply.Message.Calls()
		if (reply.Stop == goclaw.StopTools) != (len(calls) > 0) {
			t.Fatalf("stop reason %q with %d calls", reply.Stop, len(calls))
		}
		if len(calls) == 0 {
			text := reply.Message.PlainText()
			if !strings.HasPrefix(text, Label) || strings.Count(text, strings.TrimSpace(Label)) != 1 {
				t.Fatalf("not labelled once: %q", text)
			}
			return text, msgs
		}
		m := goclaw.Message{Role: goclaw.RoleUser}
		for _, c := range calls {
			res := f.run(t, c)
			m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolResult, Result: &res})
		}
		msgs = append(msgs, m)
	}
	t.Fatal("the model doesn't come to an end")
	return "", nil
}

func workspace(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func notes() map[string]string {
	return map[string]string{
		"notes/tides.md":      "# Tides\n\nThe Moon's pull raises two tidal bulges.\nSpring tides come at new and full moon.\n",
		"notes/glaciers.txt":  "Glaciers are rivers of ice.\nA glacier calves icebergs into the sea.\n",
		"notes/coast.md":      "Coast notes.\nWhere a glacier meets the sea, the tide lifts and breaks its tongue.\n",
		"shopping.txt":        "milk\nbread\n",
		".goclaw/agents/x.md": "tides and glaciers\n",
	}
}

func user(text string) goclaw.Message { return goclaw.Text(goclaw.RoleUser, text) }

func task(text string) goclaw.Message {
	return user("[Subagent Context] You are running as a subagent (depth 1/1); results auto-announce.\n" +
		"Requester: agent:main:main\nLabel: x\n\n[Subagent Task]: " + text)
}
