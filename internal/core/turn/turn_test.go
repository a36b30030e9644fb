package turn_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/turn"
)

var update = flag.Bool("update", false, "rewrite the transcripts' expectations")

// TestTranscripts replays the logs of testdata: each archive holds the events
// of one run (a line each), and what the loop decides after every one of them,
// what a takeover at the end would record, and the messages for the model.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			events := readEvents(t, ar.Files[0].Data)
			got := []txtar.File{
				ar.Files[0],
				{Name: "decisions", Data: decisions(events)},
				{Name: "takeover", Data: asJSON(t, turn.Recover(turn.Fold(events), "p2", false))},
				{Name: "messages", Data: messages(turn.Fold(events).Messages())},
			}
			if *update {
				ar.Files = got
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(ar)), string(txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: got}))); diff != "" {
				t.Errorf("run with -update if this is right:\n%s", diff)
			}
		})
	}
}

func readEvents(t *testing.T, data []byte) []goclaw.Event {
	t.Helper()
	var events []goclaw.Event
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		e := goclaw.Event{Seq: len(events)}
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatalf("line %d: %v", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events
}

func decisions(events []goclaw.Event) []byte {
	var b bytes.Buffer
	names := []string{"assemble", "call model", "call tools", "finish", "done"}
	for i := range len(events) + 1 {
		a := turn.Next(turn.Fold(events[:i]), 3)
		fmt.Fprintf(&b, "%d: %s", i, names[a.Kind])
		for _, c := range a.Calls {
			fmt.Fprintf(&b, " %s", c.ID)
		}
		if a.Kind == turn.Finish {
			fmt.Fprintf(&b, " %s %q %q silent=%v", a.State, a.Result, a.Error, a.Silent)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func messages(msgs []goclaw.Message) []byte {
	var b bytes.Buffer
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p.Kind {
			case goclaw.PartToolCall:
				fmt.Fprintf(&b, "%s: call %s %s %s\n", m.Role, p.Call.ID, p.Call.Name, p.Call.Arguments)
			case goclaw.PartToolResult:
				fmt.Fprintf(&b, "%s: result %s error=%v %s\n", m.Role, p.Result.CallID, p.Result.IsError, p.Result.Content)
			default:
				fmt.Fprintf(&b, "%s: %s %s\n", m.Role, p.Kind, p.Text)
			}
		}
	}
	return b.Bytes()
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// However a log is cut, the loop knows what to do next, and the transcript
// answers every call exactly once as soon as the run has ended.
func TestAnyPrefixGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		for cut := range len(log) + 1 {
			s := turn.Fold(log[:cut])
			if a := turn.Next(s, 0); cut == 0 && a.Kind != turn.Assemble {
				t.Fatalf("an empty log decides %v", a.Kind)
			}
			rec := turn.Recover(s, "p2", false)
			for _, c := range s.Pending() {
				again := true
				for _, u := range rec.Uncertain {
					again = again && u.CallID != c.ID
				}
				_, began := s.Steps[len(s.Steps)-1].Intents[c.ID]
				if began && again && !strings.HasPrefix(c.Name, "safe") {
					t.Fatalf("%s %s would run twice", c.Name, c.ID)
				}
			}
			ended := append(log[:cut:cut], goclaw.Event{Seq: cut, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCancelled}})
			open := map[string]int{}
			for _, m := range turn.Fold(ended).Messages() {
				for _, c := range m.Calls() {
					open[c.ID]++
				}
				for _, p := range m.Parts {
					if p.Result != nil {
						open[p.Result.CallID]--
					}
				}
			}
			for id, n := range open {
				if n != 0 {
					t.Fatalf("call %s has %d results too few", id, n)
				}
			}
		}
	})
}

func drawLog(t *rapid.T) []goclaw.Event {
	log := []goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, "go")}}}
	add := func(e goclaw.Event) {
		e.Seq = len(log)
		log = append(log, e)
	}
	for step := range rapid.IntRange(0, 4).Draw(t, "steps") {
		reply := goclaw.ModelEvent{Stop: goclaw.StopTools, Message: goclaw.Message{Role: goclaw.RoleAssistant}}
		var intents goclaw.IntentEvent
		for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{"safe_read", "exec"}).Draw(t, "tool")
			id := fmt.Sprintf("c%d_%d", step, i)
			reply.Message.Parts = append(reply.Message.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: id, Name: name}})
			intents.Calls = append(intents.Calls, goclaw.Intent{CallID: id, Name: name, Idempotent: strings.HasPrefix(name, "safe")})
		}
		add(goclaw.Event{Kind: goclaw.EventModel, Model: &reply})
		add(goclaw.Event{Kind: goclaw.EventIntent, Intent: &intents})
		for _, in := range rapid.Permutation(intents.Calls).Draw(t, "order") {
			add(goclaw.Event{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{CallID: in.CallID, Name: in.Name, Content: "ok"}})
		}
	}
	return log
}
