package compact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/compact"
	"goclaw/internal/core/turn"
)

// run is a run that asked, called a tool for each result, and answered.
func run(ordinal int64, ask string, results ...string) goclaw.RunLog {
	r := goclaw.Run{ID: fmt.Sprintf("run%d", ordinal), Ordinal: ordinal, State: goclaw.StateCompleted, Result: "answer to " + ask}
	events := []goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, ask)}}}
	add := func(e goclaw.Event) {
		e.Seq = len(events)
		events = append(events, e)
	}
	for i, res := range results {
		id := fmt.Sprintf("c%d", i)
		add(goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Message{
			Role: goclaw.RoleAssistant, Parts: []goclaw.Part{{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{
				ID: id, Name: "write", Arguments: fmt.Sprintf(`{"path":"notes/%d-%d.md"}`, ordinal, i),
			}}},
		}}})
		add(goclaw.Event{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{CallID: id, Name: "write", Content: res}})
	}
	add(goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, r.Result)}})
	add(goclaw.Event{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted}})
	return goclaw.RunLog{Run: r, Events: events}
}

func size(v turn.View, logs []goclaw.RunLog, now goclaw.Run, s turn.State) int64 {
	return int64(compact.Bytes(v.Transcript(logs))+compact.Bytes(v.Messages(now, s))) / 4
}

// Whatever the conversation: calls and results stay together, what is recent
// stays word for word, no result is cut that is summarised anyway, and as soon
// as anything can be done the request gets as small as the plan says.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Those of some 2,000 bytes are the longest that are never cut.
		result := rapid.Map(rapid.OneOf(rapid.IntRange(0, 9000), rapid.IntRange(500, 2100)), func(n int) string { return strings.Repeat("x", n) })
		var logs []goclaw.RunLog
		n := rapid.IntRange(0, 12).Draw(t, "runs")
		for i := range n {
			logs = append(logs, run(int64(10+i), strings.Repeat("why ", rapid.IntRange(0, 900).Draw(t, "ask")), rapid.SliceOfN(result, 0, 4).Draw(t, "results")...))
		}
		own := run(100, "now", rapid.SliceOfN(result, 0, 6).Draw(t, "own")...)
		now, events := own.Run, own.Events[:len(own.Events)-2]
		state := turn.Fold(events)
		before := turn.ViewOf(logs, state)
		want := compact.Want{
			Total: size(before, logs, now, state), Logs: logs, View: before, Run: now, State: state,
			Limit:      rapid.Int64Range(0, 20_000).Draw(t, "limit"),
			KeepRecent: rapid.Int64Range(0, 8_000).Draw(t, "keep"),
			Summarise:  rapid.Bool().Draw(t, "summarise"),
		}
		plan := compact.Make(want)
		for round := 0; !plan.IsZero(); round++ {
			if round > n+20 {
				t.Fatal("compaction does not end")
			}
			state.Compacted = append(state.Compacted, goclaw.CompactEvent{Through: plan.Through, Trimmed: plan.Trimmed, Summary: "S"})
			view := turn.ViewOf(logs, state)
			check(t, view, logs, now, state)
			got := size(view, logs, now, state)
			if diff := got - plan.Total; diff < -60 || diff > 120 {
				t.Fatalf("the plan says %d tokens, there are %d", plan.Total, got)
			}
			for _, l := range logs {
				for _, c := range plan.Trimmed {
					if c.Run == l.Run.ID && l.Run.Ordinal <= plan.Through {
						t.Fatalf("a result of %s is cut although it is summarised", c.Run)
					}
				}
			}
			want.View, want.State, want.Total = view, state, got
			want.Summarise = false
			if got <= want.Limit {
				break
			}
			plan = compact.Make(want)
		}
		if want.Total > want.Limit {
			left := want.Total - int64(compact.Bytes(want.View.Messages(now, state))/4)
			if keep := max(want.KeepRecent, 1) + 400; left > keep {
				t.Fatalf("%d tokens of earlier turns are left over the limit of %d; %d are to be kept", left, want.Limit, keep)
			}
		}
	})
}

// check fails unless every call has its result right after it.
func check(t *rapid.T, v turn.View, logs []goclaw.RunLog, now goclaw.Run, s turn.State) {
	open := map[string]bool{}
	for _, m := range append(v.Transcript(logs), v.Messages(now, s)...) {
		for _, p := range m.Parts {
			switch {
			case p.Result != nil && !open[p.Result.CallID]:
				t.Fatalf("the result of %s has no call", p.Result.CallID)
			case p.Result != nil:
				delete(open, p.Result.CallID)
			case len(open) > 0:
				t.Fatalf("%v have no result", open)
			}
		}
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
	}
}

func TestOldestAndLargestFirst(t *testing.T) {
	long := func(n int) string { return strings.Repeat("y", n) }
	logs := []goclaw.RunLog{run(1, "a", long(4000), long(8000)), run(2, "b", long(40_000)), run(3, "c")}
	w := compact.Want{Total: 14_000, Logs: logs, Run: goclaw.Run{Ordinal: 9}, Limit: 16_500, KeepRecent: 100}
	p := compact.Make(w) // aims at 11,550
	if len(p.Trimmed) != 2 || p.Trimmed[0].Bytes != 8000 || p.Trimmed[1].Bytes != 4000 || p.Through != 0 {
		t.Errorf("%+v", p)
	}
	w.Limit = 4000
	if p = compact.Make(w); len(p.Trimmed) != 3 || p.Through != 0 {
		t.Errorf("three cuts are enough: %+v", p)
	}
}

func TestSummary(t *testing.T) {
	ask := compact.Request(" keep the tides ").PlainText()
	if !strings.HasPrefix(ask, "<compaction_request>") || !strings.Contains(ask, "in particular: keep the tides\n") || strings.Contains(ask, "{{") {
		t.Error(ask)
	}
	for _, tc := range []struct {
		reply, summary, notes string
		ok                    bool
	}{
		{"<notes>\nlikes tea\n</notes>\n<summary>\nDecisions: none\n</summary>", "Decisions: none", "likes tea", true},
		{"Sure.\n<summary>a <b> </summary> c</summary> bye", "a <b> </summary> c", "", true},
		{"<summary>cut off", "cut off", "", true},
		{"<summary> </summary>", "", "", false},
		{"I can't do that.", "", "", false},
	} {
		summary, notes, ok := compact.Parse(tc.reply)
		if summary != tc.summary || notes != tc.notes || ok != tc.ok {
			t.Errorf("%q: %q, %q, %v", tc.reply, summary, notes, ok)
		}
	}
}

// What no model has to remember comes from the record.
func TestFromTheRecord(t *testing.T) {
	logs := []goclaw.RunLog{run(1, "first", "r", "r"), run(2, "second", "r"), run(3, "third")}
	if got := compact.Files(logs, 2); !strings.HasSuffix(got, ": notes/1-0.md, notes/1-1.md, notes/2-0.md") {
		t.Error(got)
	}
	if got := compact.Files(logs[2:], 3); got != "" {
		t.Error(got)
	}
	got := compact.Digest(logs, turn.View{Through: 1, Summary: "the first"}, 2, 4000)
	for _, want := range []string{"From before: the first", "Asked: second", "Answered: answer to second"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	logs[1].Run.State, logs[1].Run.Error = goclaw.StateFailed, "no model"
	if failed := compact.Digest(logs, turn.View{}, 2, 4000); !strings.Contains(failed, "Asked: second\n  Ended: failed. no model") {
		t.Error(failed)
	}
	if strings.Contains(got, "third") || strings.Contains(got, "Asked: first") {
		t.Error(got)
	}
}

// However often no model gives a summary, what stands in for it stays small,
// and tells of the newest turns.
func TestDigestStaysSmall(t *testing.T) {
	const most = 3000
	var v turn.View
	var logs []goclaw.RunLog
	for round := range 30 {
		for range 8 {
			logs = append(logs, run(int64(len(logs)+1), fmt.Sprintf("question %d of many words %s", len(logs), strings.Repeat("é ", 100))))
		}
		through := int64(len(logs))
		got := compact.Digest(logs, v, through, most)
		if len(got) > most+100 || !utf8.ValidString(got) {
			t.Fatalf("round %d: %d bytes", round, len(got))
		}
		if !strings.Contains(got, fmt.Sprintf("Asked: question %d of", len(logs)-1)) || strings.Count(got, "No model wrote") != 1 {
			t.Fatalf("round %d:\n%s", round, got)
		}
		v = turn.ViewOf(nil, turn.State{Compacted: []goclaw.CompactEvent{{Through: through, Summary: got}}})
	}
	if got := compact.Digest(logs[:1], turn.View{}, 1, 10); strings.Contains(got, "Asked") || !strings.Contains(got, "1 older turns are left out") {
		t.Errorf("%q", got)
	}
}
