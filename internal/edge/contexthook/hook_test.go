//go:build unix

package contexthook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func script(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook.sh")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"sh", path}
}

func getenv(name string) string {
	return map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/rat", "LANG": "C", "ANTHROPIC_API_KEY": "sk-secret"}[name]
}

func sections() []goclaw.Section {
	return []goclaw.Section{
		{ID: "identity", Source: "built-in", Stable: true, Tokens: 4, Text: "You are it <&>"},
		{ID: "safety", Title: "Safety", Source: "built-in", Stable: true, Tokens: 1, Text: "ü"},
	}
}

func rewrite(t *testing.T, command []string, timeout time.Duration) ([]goclaw.Section, error) {
	t.Helper()
	h := New(Options{Command: command, Timeout: timeout, Home: "/home/rat/.goclaw", Getenv: getenv})
	key := goclaw.APIKey("main", "bob")
	return h.Rewrite(t.Context(), key, goclaw.Profile{Agent: "main", Workspace: t.TempDir(), Model: "demo/offline"}, sections())
}

const long = time.Minute

func TestRewrite(t *testing.T) {
	same := sections()
	for name, tt := range map[string]struct {
		text string
		want func(source string) []goclaw.Section
	}{
		"as it was":       {"cat", func(string) []goclaw.Section { return same }},
		"without reading": {`echo '[]'`, func(string) []goclaw.Section { return []goclaw.Section{} }},
		"changed, added and moved": {
			`echo '{"kind": "api", "sections": [{"id": "mine", "title": "Mine", "text": "12345", "tokens": 99, "stable": false, "source": "x"},'
			 echo '{"id": "safety", "title": "Safety", "text": "ü", "source": "x"}, {"id": "identity", "text": ""}]}'`,
			func(source string) []goclaw.Section {
				return []goclaw.Section{
					{ID: "mine", Title: "Mine", Source: source, Stable: true, Tokens: 2, Text: "12345"},
					same[1],
					{ID: "identity", Source: source, Stable: true},
				}
			},
		},
		"another title": {
			`echo '[{"id": "safety", "title": "Be safe", "text": "ü"}]'`,
			func(source string) []goclaw.Section {
				return []goclaw.Section{{ID: "safety", Title: "Be safe", Source: source, Stable: true, Tokens: 1, Text: "ü"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			command := script(t, tt.text)
			got, err := rewrite(t, command, long)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want("hook: "+strings.Join(command, " ")), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The command sees its request and a bare environment, and runs in the
// workspace.
func TestRequest(t *testing.T) {
	seen := t.TempDir()
	command := append(script(t, `cat > "$1/request"; env > "$1/env"; pwd > "$1/pwd"; cat "$1/request"`), seen)
	if _, err := rewrite(t, command, long); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(seen, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var got map[string]any
	if err := json.Unmarshal(read("request"), &got); err != nil {
		t.Fatal(err)
	}
	pwd := strings.TrimSpace(string(read("pwd")))
	if got["workspace"] == "" || !strings.HasSuffix(pwd, got["workspace"].(string)) {
		t.Errorf("it ran in %s, not in %s", pwd, got["workspace"])
	}
	delete(got, "workspace")
	want := map[string]any{
		"session": "agent:main:api:user:bob", "agent": "main", "kind": "api", "model": "demo/offline",
		"sections": []any{
			map[string]any{"id": "identity", "title": "", "source": "built-in", "stable": true, "tokens": 4.0, "text": "You are it <&>"},
			map[string]any{"id": "safety", "title": "Safety", "source": "built-in", "stable": true, "tokens": 1.0, "text": "ü"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	shells := map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true} // a shell's own
	for line := range strings.Lines(string(read("env"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if known := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/rat", "LANG": "C", "GOCLAW_HOME": "/home/rat/.goclaw"}; known[name] != value && !shells[name] {
			t.Errorf("it sees %s=%s", name, value)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"":                             `it is empty; write {"sections": […]}`,
		"hello":                        "it is no JSON (line 1: invalid character 'h' looking for beginning of value)",
		"{\n\"sections\": [\n}":        "it is no JSON (line 3: invalid character '}'",
		`{"sections": [`:               "its JSON ends too early",
		`[] []`:                        "something follows the JSON",
		`{}`:                           `it has no sections; write {"sections": […]}`,
		`{"sections": null}`:           "it has no sections",
		`{"section": []}`:              `unknown field "section"`,
		`[{"id": "a", "txt": ""}]`:     `unknown field "txt"`,
		`[{"text": "x"}]`:              "sections[0] has no id",
		`[{"id": "", "text": "x"}]`:    "sections[0] has no id",
		`[{"id": "a b", "text": "x"}]`: `sections[0]: the id "a b" holds spaces or control characters`,
		`[{"id": "a"}]`:                "sections[0] (a) has no text; leave the section out, or give it a string",
		`[{"id": "a", "text": null}]`:  "sections[0] (a) has no text",
		`[{"id": "a", "text": 7}]`:     "text can't be a number",
		`{"sections": {"a": "b"}}`:     "sections can't be a object",
		`"text"`:                       `it can't be a string; write {"sections": […]}`,
		`[{"id": "a", "text": "x", "title": "a\nb"}]`:          "sections[0] (a): the title must be one line",
		`[{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]`: `sections[1]: the id "a" stands there twice`,
		"[{\"id\": \"a\", \"text\": \"caf\xe9\"}]":             "it is not UTF-8",
	} {
		if _, err := parse([]byte(answer)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngives %v\nwant  %s", answer, err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		command []string
		timeout time.Duration
		want    string
	}{
		"exit code":    {script(t, "echo '[]'; echo; echo ' no python here ' >&2; echo more >&2; exit 3"), long, "exit status 3: no python here"},
		"silent":       {script(t, "exit 1"), long, "exit status 1, and it says nothing on standard error"},
		"long talk":    {script(t, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1"), long, "exit status 1: " + strings.Repeat("x", 300) + "…"},
		"bad answer":   {script(t, "echo hello"), long, "its answer is not valid: it is no JSON"},
		"too much":     {script(t, "cat /dev/zero"), long, "it wrote more than 1024 KB; it has to return the sections and nothing else"},
		"hangs":        {script(t, "sleep 600"), 50 * time.Millisecond, "it took longer than 50ms and was ended; mend it, or raise context.hook.timeoutSeconds"},
		"no program":   {[]string{"goclaw-none-such"}, long, "it can't be started: executable file not found in $PATH; mend context.hook.command"},
		"no such file": {[]string{"/none/such"}, long, "it can't be started: no such file or directory; mend context.hook.command"},
		"signal":       {script(t, "kill -9 $$"), long, "signal: killed, and it says nothing on standard error"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rewrite(t, tt.command, tt.timeout)
			if want := "context.hook: " + strings.Join(tt.command, " ") + ": " + tt.want; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// gone waits until a process is no more, or only waits to be reaped: it was
// killed already, but takes its time.
func gone(t *testing.T, pidFile string) {
	t.Helper()
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
			if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "Z") {
				return
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the child lives on")
		}
	}
}

// A child that holds the command's output open is ended with it: neither is
// waited for, and what the command itself said counts.
func TestChildHoldsTheOutput(t *testing.T) {
	seen := t.TempDir()
	command := append(script(t, `sleep 600 & echo $! > "$1/pid"; echo '[]'`), seen)
	got, err := rewrite(t, command, long)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	gone(t, filepath.Join(seen, "pid"))
}

func TestCancelEndsTheGroup(t *testing.T) {
	seen := t.TempDir()
	command := append(script(t, `sleep 600 & echo $! > "$1/new"; mv "$1/new" "$1/pid"; wait`), seen)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("goclaw is stopping")
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(filepath.Join(seen, "pid")); err == nil {
				cancel(why)
				return
			}
		}
	})
	h := New(Options{Command: command, Timeout: long, Getenv: getenv})
	if _, err := h.Rewrite(ctx, goclaw.MainKey("main"), goclaw.Profile{Workspace: t.TempDir()}, nil); !errors.Is(err, why) {
		t.Error(err)
	}
	gone(t, filepath.Join(seen, "pid"))
}

// A process that leaves the group can't be ended with it; it is not waited for
// either.
func TestChildThatEscapes(t *testing.T) {
	seen := t.TempDir()
	command := append(script(t, `command -v setsid > /dev/null || { echo no setsid >&2; exit 9; }
		setsid sh -c 'echo $$ > "$1/pid"; echo > "$1/ready"; exec sleep 600' - "$1" &
		until test -e "$1/ready"; do sleep 0.01; done; echo '[]'`), seen)
	_, err := rewrite(t, command, long)
	if err != nil && strings.Contains(err.Error(), "no setsid") {
		t.Skip("there is no setsid here")
	}
	if err == nil || !strings.HasSuffix(err.Error(), "a process that it left behind holds its output open") {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(seen, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"sections": [{"id": "a", "text": "x"}]}`))
	f.Add([]byte(`[{"id": "a", "text": null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sections, err := parse(data)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("an error without words")
		}
		if err == nil {
			(&Hook{command: []string{"x"}}).settle(nil, sections)
		}
	})
}
