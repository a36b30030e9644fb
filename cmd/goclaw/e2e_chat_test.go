package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/edge/provider/demo"
	"goclaw/internal/edge/provider/providertest"
)

// chatScreen is `goclaw chat` in a real terminal, that of tmux.
type chatScreen struct {
	t      *testing.T
	socket string
	env    []string
}

// chat starts the chat of the home in a terminal of 110 by 34.
func (h *e2e) chat() *chatScreen {
	h.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.t.Skip("NOT TESTED: the chat in a real terminal, for tmux is missing")
	}
	// A socket's path has room for little more than a hundred characters.
	dir, err := os.MkdirTemp("", "goclaw-tmux-")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			h.t.Error(err)
		}
	})
	cmd := program(h.t, h.home, h.env, "chat")
	term := &chatScreen{t: h.t, socket: filepath.Join(dir, "s"), env: append(cmd.Env, "LANG=C.UTF-8", "PWD="+dir)}
	config := filepath.Join(dir, "conf")
	h.file(config, "set -g default-terminal screen-256color\nset -g escape-time 0\n")
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("the screen:\n%s", term.screen())
		}
		_ = term.tmux("kill-server").Run() // it may have gone
		eventually(h.t, "tmux has ended", func() bool { return len(processesWith(dir)) == 0 })
	})
	// tmux loses exit codes at times, a shell doesn't.
	script := `"$0" chat; echo "[left with exit code $?]"; read -r _`
	start := []string{"-f", config, "new-session", "-d", "-x", "110", "-y", "34", "-c", dir, "--", "sh", "-c", script, cmd.Path}
	if out, err := term.tmux(start...).CombinedOutput(); err != nil {
		h.t.Fatalf("tmux: %v %s", err, out)
	}
	return term
}

func (x *chatScreen) tmux(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Env = x.env
	return cmd
}

// screen is what is shown, and what has scrolled out of it.
func (x *chatScreen) screen() string {
	out, err := x.tmux("capture-pane", "-p", "-S", "-100", "-t", ":").Output()
	if err != nil {
		return "(no screen: " + err.Error() + ")"
	}
	return string(out)
}

// sees waits until all texts are on the screen.
func (x *chatScreen) sees(texts ...string) {
	x.t.Helper()
	eventually(x.t, "the screen shows "+strings.Join(texts, " and "), func() bool {
		shown := x.screen()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return false
			}
		}
		return true
	})
}

// press sends keys by their tmux names.
func (x *chatScreen) press(keys ...string) {
	x.t.Helper()
	if out, err := x.tmux(append([]string{"send-keys", "-t", ":"}, keys...)...).CombinedOutput(); err != nil {
		x.t.Fatalf("send-keys: %v %s", err, out)
	}
}

// say types a message and sends it.
func (x *chatScreen) say(text string) {
	x.t.Helper()
	x.sees("ready")
	x.press("-l", text)
	x.sees("› " + text)
	x.press("Enter")
}

// leave ends the chat and wants a clean exit.
func (x *chatScreen) leave() {
	x.t.Helper()
	x.press("C-d")
	x.sees("[left with exit code 0]")
}

// TestChatOffline: without a key the chat says that the demonstration answers,
// and does the example with two workers.
func TestChatOffline(t *testing.T) {
	t.Parallel()
	h := newE2E(t, providertest.WireAnthropic, func(*providertest.Request) providertest.Answer {
		t.Error("a server was asked without a key")
		return providertest.Answer{}
	})
	h.env = h.env[2:] // no key, no address
	h.file("notes/tides.md", "# Tides\n\nTides rise twice a day, for the moon pulls.\n")
	h.file("notes/glaciers.md", "# Glaciers\n\nGlaciers carry rocks down their valleys.\n")
	x := h.chat()
	x.sees("offline demonstration model", "Write a message")
	x.say("research tides and glaciers with two workers")
	x.sees(demo.Label, "Tides rise twice a day", "notes/tides.md", "Glaciers carry rocks down", "notes/glaciers.md", "ready")
	x.leave()
}

// TestChat: the same with a model, and a worker cancelled by a key.
func TestChat(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, func(r *providertest.Request) providertest.Answer {
			switch {
			case r.Worker() && r.Task() == "wait":
				return providertest.Answer{Text: "waiting for ever", Fault: providertest.StallAfter(300)}
			case strings.HasSuffix(r.NewestText(), "wait for me"):
				return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: arguments(args{"task": "wait", "label": "patience"})}}}
			case strings.Contains(r.NewestText(), "[Subagent: patience] Cancelled"):
				return providertest.Answer{Text: "So it was called off."}
			case len(r.NewestResults()) == 1 && !r.Worker():
				return providertest.Answer{Text: "It waits."}
			}
			return competent(r)
		})
		h.jobNotes()
		x := h.chat()
		x.sees("Write a message", strings.TrimPrefix(h.model(), wire+"/"))
		x.say("research tides and glaciers")
		x.sees("I have started 2 workers.", "Together:", "tides have FACT two bulges.", "glaciers have FACT blue ice.", "workers: 2 ended", "ready")

		x.say("wait for me")
		x.sees("It waits.", "1 running", "patience")
		eventually(t, "the worker is in its stream", func() bool { return h.streams.count() == 1 })
		x.press("C-x")
		x.sees("Cancel worker patience? y/n")
		x.press("y")
		x.sees("So it was called off.")
		eventually(t, "the stream has ended", func() bool { return h.streams.count() == 0 })

		x.say("once more, wait for me")
		x.sees("1 running")
		eventually(t, "the worker is in its stream", func() bool { return h.streams.count() == 1 })
		x.leave()
		x.sees("1 worker is paused and will be resumed by the next start of goclaw")
	})
}
