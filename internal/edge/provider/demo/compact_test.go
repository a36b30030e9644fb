package demo

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
)

func said(text string) goclaw.Message { return goclaw.Text(goclaw.RoleAssistant, text) }

func summary(t *testing.T, most int, msgs ...goclaw.Message) string {
	t.Helper()
	reply, err := New().Stream(t.Context(), goclaw.ModelRequest{Model: Model, Tools: allTools(), MaxTokens: most,
		Messages: append(msgs, user("<compaction_request>\nSum up what was said.\n</compaction_request>"))}, nil)
	if err != nil || len(reply.Message.Calls()) > 0 {
		t.Fatalf("%+v, %v", reply, err)
	}
	return reply.Message.PlainText()
}

func TestCompaction(t *testing.T) {
	spawn := goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{
		ID: "1", Name: "sessions_spawn", Arguments: `{"label":"research-tides","task":"look"}`}}}}
	result := goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "1", Content: "7777 is in a result"}}}}
	got := summary(t, 0,
		user("<turn_context>\nMonday 2026-01-05 | via chat\n</turn_context>\n\nread notes/tides.md, please"),
		said(Label+"notes/tides.md says:\n\n4 metres at high tide"),
		user("Hello!\nPlease remember that the boat is called Anna.\nremember: tea at 5"),
		said(Label+"I noted it in MEMORY.md."),
		spawn, result,
		user("[Subagent: glaciers] Complete.\n\nThey melt by 12% a year."),
		said(Label+"The worker glaciers has reported. </summary> is no end."),
		user("what about "+strings.Repeat("it ", 100)),
	)
	want := `<notes>
- the boat is called Anna.
- tea at 5
</notes>
<summary>
(demonstration summary, by rules)
Asked:
- read notes/tides.md, please
- Hello! Please remember that the boat is called Anna. remember: tea at 5
- what about ` + strings.TrimSpace(strings.Repeat("it ", 63)) + `…
Last replies:
- notes/tides.md says:
- I noted it in MEMORY.md.
- The worker glaciers has reported. is no end.
Workers: research-tides; glaciers
Files: notes/tides.md; MEMORY.md
Figures: 4 metres; 5; 12%
</summary>`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A second summary keeps the first.
	again := summary(t, 0, user("<earlier>\n"+got+"\n</earlier>"), said("Go on."), user("and the moon?"), said("It is round."))
	for _, part := range []string{"the boat is called Anna", "12%", "- and the moon?", "- It is round."} {
		if strings.Count(again, part) != 1 {
			t.Errorf("%q is there %d times in\n%s", part, strings.Count(again, part), again)
		}
	}
	if n := strings.Count(again, summaryMark); n != 1 {
		t.Errorf("the label is there %d times", n)
	}
}

func TestCompactionOfNothing(t *testing.T) {
	const want = "<notes>\n</notes>\n<summary>\n(demonstration summary, by rules)\nNothing was said.\n</summary>"
	if diff := cmp.Diff(want, summary(t, 0)); diff != "" {
		t.Error(diff)
	}
}

// However long the conversation, the answer stays whole within its limit.
func TestCompactionFits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var msgs []goclaw.Message
		for i := range rapid.IntRange(0, 80).Draw(rt, "turns") {
			text := rapid.SampledFrom([]string{"read /a/b/%d.md", "%d </notes> metres", "remember nothing %d", "<summary>%d", "the 潮 is %d"}).Draw(rt, "text")
			msgs = append(msgs, user(fmt.Sprintf(text, i)), said(fmt.Sprintf("answer %d", i)))
		}
		got := summary(t, 700, msgs...)
		if !strings.HasPrefix(got, "<notes>\n") || !strings.HasSuffix(got, "\n</summary>") || len(got) > 2800 || !utf8.ValidString(got) {
			rt.Fatalf("%d bytes: %s", len(got), got)
		}
		for _, tag := range []string{"<notes>", "</notes>", "<summary>", "</summary>"} {
			if strings.Count(got, tag) != 1 {
				rt.Fatalf("%s is there %d times", tag, strings.Count(got, tag))
			}
		}
	})
}
