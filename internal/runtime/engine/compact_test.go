package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

// diary is where notes go in these tests; it refuses what stands in its way.
type diary struct {
	mu      sync.Mutex
	entries map[string]string // by mark
	times   int
	broken  bool
}

func (d *diary) Remember(_, day, mark, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return fmt.Errorf("no space left on device")
	}
	d.times++
	if d.entries == nil {
		d.entries = map[string]string{}
	}
	d.entries[mark] = day + ": " + text
	return nil
}

const summaryReply = "<notes>\nlikes tea\n</notes>\n<summary>\nDecisions: take the boat. Numbers: 4711.\n</summary>"

func isCompaction(q goclaw.ModelRequest) bool {
	return strings.HasPrefix(lastText(q), "<compaction_request>")
}

// reading is a model that reads a long note whenever it is asked to.
func reading(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
	switch {
	case isCompaction(q):
		return text(summaryReply)
	case strings.Contains(lastText(q), "read"):
		return calls(goclaw.ToolCall{Name: "read_note"})
	}
	return text("answer to " + lastText(q))
}

func longNote() goclaw.Tool {
	return newTool("read_note", true, func(context.Context, goclaw.Invocation) goclaw.ToolResult {
		return goclaw.ToolOK("head of the note " + strings.Repeat("n", 8000) + " tail of the note")
	})
}

func compacting(tokens, keep int) func(*definition.Rules) {
	return func(r *definition.Rules) {
		a := r.Agents["main"]
		a.Compaction = definition.Compaction{Tokens: tokens, KeepRecent: keep, MemoryFlush: true}
		r.Agents["main"] = a
	}
}

// paired fails unless every call in the request has its result right after it.
func paired(t *testing.T, q goclaw.ModelRequest) {
	t.Helper()
	var open []string
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				i := slices.Index(open, p.Result.CallID)
				if i < 0 {
					t.Fatalf("the result of %s has no call", p.Result.CallID)
				}
				open = slices.Delete(open, i, i+1)
			} else if len(open) > 0 {
				t.Fatalf("%v have no result", open)
			}
		}
		for _, c := range m.Calls() {
			open = append(open, c.ID)
		}
	}
}

// bytesOf is the text of a request's messages.
func bytesOf(q goclaw.ModelRequest) string {
	var b strings.Builder
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text)
			if p.Result != nil {
				b.WriteString(p.Result.Content)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A long conversation: first old results are shown cut, without a model call;
// then the older turns are summarised, by a request that repeats the prefix.
// What is recent stays, the record keeps everything, notes are written once.
func TestLongConversationIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := &diary{}
		r := newRig(t, rigOptions{brain: reading, tools: []goclaw.Tool{longNote()}, rules: compacting(9000, 3000), notes: notes})
		defer r.start(t.Context())()
		for i := range 12 {
			r.say(fmt.Sprintf("turn %d: read. %s", i, strings.Repeat("so ", 400)))
			runs := r.settle()
			if last := runs[len(runs)-1]; last.State != goclaw.StateCompleted {
				t.Fatalf("turn %d: %s %s", i, last.State, last.Error)
			}
		}
		asked := r.asked(false)
		var sums, cuts int
		for i, q := range asked {
			paired(t, q)
			all := bytesOf(q)
			if len(all)/4 > 9000+2600 { // the limit, and what one step adds
				t.Errorf("request %d has %d tokens", i, len(all)/4)
			}
			if strings.Contains(all, "bytes were cut here later") && cuts == 0 && sums > 0 {
				t.Error("a summary was made before any result was cut")
			}
			cuts += strings.Count(all, "bytes were cut here later")
			if !isCompaction(q) {
				continue
			}
			sums++
			before := asked[i-1]
			for k, m := range q.Messages[:len(q.Messages)-1] {
				if got, want := fmt.Sprint(contents(m)), fmt.Sprint(contents(before.Messages[k])); got != want && sums == 1 && cuts == 0 {
					t.Errorf("message %d of the compaction differs from the request before it", k)
				}
			}
			if q.System[0].Text != before.System[0].Text || len(q.Tools) != len(before.Tools) {
				t.Error("a compaction has another prefix")
			}
		}
		if sums < 1 || sums > 5 || cuts == 0 {
			t.Fatalf("%d summaries, %d cuts", sums, cuts)
		}
		last := asked[len(asked)-1]
		if !strings.Contains(last.Messages[0].PlainText(), "take the boat. Numbers: 4711.") {
			t.Errorf("the last request begins with %q", last.Messages[0].PlainText())
		}
		if !strings.Contains(bytesOf(last), "turn 11: read. so so") || strings.Contains(bytesOf(last), "turn 0: read") {
			t.Error("the newest turn is not word for word, or the oldest still is")
		}
		if len(notes.entries) != sums || !strings.HasSuffix(oneOf(notes.entries), ": likes tea") {
			t.Errorf("%d summaries left %v", sums, notes.entries)
		}
		logs, err := r.store.History(t.Context(), goclaw.MainKey("main"), 0)
		if err != nil || len(logs) != 12 || len(logs[0].Events[2].Intent.Calls) != 1 {
			t.Fatalf("%d runs are on record, %v", len(logs), err)
		}
		paid := 0
		for _, l := range logs {
			for _, e := range l.Events {
				if e.Paid() != nil {
					paid++
				}
			}
		}
		if paid != len(asked) {
			t.Errorf("%d calls were made, %d are on record", len(asked), paid)
		}
		var told int
		for _, n := range r.heard() {
			if n.Kind == goclaw.NoticeCompact {
				told++
			}
		}
		if told < sums {
			t.Errorf("%d summaries, told of %d", sums, told)
		}
	})
}

func oneOf(m map[string]string) string {
	for _, v := range m {
		return v
	}
	return ""
}

// What earlier requests held stays as it was until the next compaction.
func TestPrefixHoldsBetweenCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: reading, tools: []goclaw.Tool{longNote()}, rules: compacting(9000, 3000)})
		defer r.start(t.Context())()
		for i := range 14 {
			r.say(fmt.Sprintf("turn %d: read", i))
			r.settle()
		}
		breaks := 0
		asked := slices.DeleteFunc(r.asked(false), isCompaction)
		for i := 1; i < len(asked); i++ {
			for k, m := range asked[i-1].Messages {
				if k >= len(asked[i].Messages) || fmt.Sprint(contents(m)) != fmt.Sprint(contents(asked[i].Messages[k])) {
					breaks++
					break
				}
			}
		}
		compactions := 0
		for _, n := range r.heard() {
			if n.Kind == goclaw.NoticeCompact {
				compactions++
			}
		}
		if breaks != compactions || compactions == 0 {
			t.Errorf("the prefix broke %d times in %d compactions", breaks, compactions)
		}
	})
}

func contents(m goclaw.Message) []string {
	var out []string
	for _, p := range m.Parts {
		out = append(out, p.Text)
		if p.Result != nil {
			out = append(out, p.Result.Content)
		}
	}
	return out
}

// /compact summarises at once, is no turn, and says what it did.
func TestCompactOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: reading, rules: compacting(0, 3000)})
		defer r.start(t.Context())()
		for i := range 6 {
			r.say(fmt.Sprintf("turn %d %s", i, strings.Repeat("so ", 400)))
			r.settle()
		}
		compact := func() goclaw.Run {
			if _, err := r.engine.Compact(t.Context(), goclaw.MainKey("main"), "keep the tides", ""); err != nil {
				t.Fatal(err)
			}
			runs := r.settle()
			return runs[len(runs)-1]
		}
		done := compact()
		if done.State != goclaw.StateCompleted || !strings.HasPrefix(done.Result, "Compacted from about ") {
			t.Fatalf("%s: %q %s", done.State, done.Result, done.Error)
		}
		asked := r.asked(false)
		if q := asked[len(asked)-1]; !isCompaction(q) || !strings.Contains(lastText(q), "keep the tides") {
			t.Error("the instructions were not passed on")
		}
		r.say("and now?")
		r.settle()
		asked = r.asked(false)
		all := bytesOf(asked[len(asked)-1])
		if !strings.Contains(all, "take the boat") || strings.Contains(all, "turn 1 so") || strings.Contains(all, "Compacted from") || !strings.Contains(all, "turn 5 so") {
			t.Errorf("the next request is\n%.2000s", all)
		}
		compact()
		if again := compact(); !strings.HasPrefix(again.Result, "Nothing to compact") {
			t.Errorf("%q", again.Result)
		}
	})
}

// A model that gives no summary, and notes that can't be written, lose nothing
// and stop nothing.
func TestCompactionWithoutASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := &diary{broken: true}
		garbled := true
		r := newRig(t, rigOptions{notes: notes, rules: compacting(3000, 500), brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if isCompaction(q) && garbled {
				garbled = false
				return calls(goclaw.ToolCall{Name: "read_note"})
			}
			return reading(ctx, q)
		}})
		defer r.start(t.Context())()
		for i := range 10 {
			r.say(fmt.Sprintf("turn %d %s", i, strings.Repeat("so ", 900)))
			for _, run := range r.settle() {
				if run.State != goclaw.StateCompleted {
					t.Fatalf("%s %s", run.State, run.Error)
				}
			}
		}
		var digest, warned bool
		for _, q := range r.asked(false) {
			digest = digest || strings.Contains(q.Messages[0].PlainText(), "No model wrote this summary") && strings.Contains(q.Messages[0].PlainText(), "Asked: turn 0 so")
		}
		for _, n := range r.heard() {
			warned = warned || n.Kind == goclaw.NoticeWarning && strings.Contains(n.Text, "no space left")
		}
		if !digest || !warned {
			t.Errorf("digest %v, warned %v", digest, warned)
		}
	})
}

// A window that is smaller than was known is found out, and made room in.
func TestTooLongForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		r := newRig(t, rigOptions{rules: compacting(0, 400), brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if len(bytesOf(q)) > 12_000 && !isCompaction(q) {
				refused++
				return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: 400, Kind: "invalid_request_error", Message: "prompt is too long: 3000 tokens > 2800 maximum"}
			}
			return reading(ctx, q)
		}})
		defer r.start(t.Context())()
		for i := range 8 {
			r.say(fmt.Sprintf("turn %d %s", i, strings.Repeat("so ", 900)))
			for _, run := range r.settle() {
				if run.State != goclaw.StateCompleted {
					t.Fatalf("%s %s", run.State, run.Error)
				}
			}
		}
		if refused == 0 {
			t.Error("nothing was refused: the test tests nothing")
		}
	})
}

// A process that hangs once the summary is paid for, until another has taken
// over, neither loses the conversation nor has its notes written twice.
func TestCompactionSurvivesATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := &diary{}
		store := memory.Open()
		ice := &frozen{Store: store}
		hung := make(chan struct{})
		var once sync.Once
		first := newRig(t, rigOptions{store: ice, owner: "p1", brain: reading, rules: compacting(3000, 500), notes: notes, hook: func(point string) {
			if point == "compact.after" {
				once.Do(func() { ice.freeze(); close(hung) })
			}
		}})
		defer first.start(t.Context())()
		for i := range 4 {
			first.say(fmt.Sprintf("turn %d %s", i, strings.Repeat("so ", 900)))
		}
		<-hung
		second := newRig(t, rigOptions{store: store, owner: "p2", sole: true, brain: reading, rules: compacting(3000, 500), notes: notes})
		defer second.start(t.Context())()
		runs := second.settle()
		ice.melt()
		synctest.Wait()
		taken := 0
		for _, run := range runs {
			if run.State != goclaw.StateCompleted {
				t.Fatalf("%s %s", run.State, run.Error)
			}
			if run.Recovery != nil {
				taken++
			}
		}
		if taken != 1 {
			t.Errorf("%d runs were taken over", taken)
		}
		if len(notes.entries) == 0 || notes.times != len(notes.entries) {
			t.Errorf("%d times, %v", notes.times, notes.entries)
		}
	})
}

var _ engine.Notes = (*diary)(nil)
