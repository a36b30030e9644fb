package turn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/turn"
)

func TestParseReply(t *testing.T) {
	long := strings.Repeat("x", 300)
	for in, want := range map[string]turn.Reply{
		"hello":                                  {Text: "hello"},
		"":                                       {},
		"[[reply_to_current]] hello":             {Text: "hello", Current: true},
		"\n [[ Reply_To_Current ]]\nhello\n":     {Text: "hello\n", Current: true},
		"[[reply_to:17]]hello":                   {Text: "hello", To: "17"},
		"[[ reply_to : $ab:example.org ]] hello": {Text: "hello", To: "$ab:example.org"},
		"[[REPLY_TO:Ab]] hello":                  {Text: "hello", To: "Ab"},
		"[[reply_to:1]][[reply_to_current]] hello":     {Text: "hello", To: "1"},
		"[[reply_to_current]] [[reply_to:2]]\n\nhello": {Text: "hello", Current: true},
		"[[reply_to_current]]":                         {Current: true},
		"[[reply_to:]] hello":                          {Text: "[[reply_to:]] hello"},
		"[[reply_to: ]] hello":                         {Text: "[[reply_to: ]] hello"},
		"[[reply_to]] hello":                           {Text: "[[reply_to]] hello"},
		"hello [[reply_to:17]]":                        {Text: "hello [[reply_to:17]]"},
		"[reply_to:17] hello":                          {Text: "[reply_to:17] hello"},
		"[[reply_to:1\n7]] hello":                      {Text: "[[reply_to:1\n7]] hello"},
		"[[reply_to:" + long + "]] hello":              {Text: "[[reply_to:" + long + "]] hello"},
		"`[[reply_to_current]]` is a tag":              {Text: "`[[reply_to_current]]` is a tag"},
	} {
		if diff := cmp.Diff(want, turn.ParseReply(in)); diff != "" {
			t.Errorf("%q:\n%s", in, diff)
		}
	}
}

func TestReplyTag(t *testing.T) {
	for _, c := range []struct {
		reply         turn.Reply
		current, want string
	}{
		{turn.Reply{}, "5", ""},
		{turn.Reply{Current: true}, "5", "[[reply_to:5]]"},
		{turn.Reply{Current: true}, "", ""},
		{turn.Reply{Current: true}, "a]b", ""},
		{turn.Reply{Current: true}, strings.Repeat("x", 300), ""},
		{turn.Reply{To: "7"}, "5", "[[reply_to:7]]"},
	} {
		if got := c.reply.Tag(c.current); got != c.want {
			t.Errorf("%+v with %q: %q, want %q", c.reply, c.current, got, c.want)
		}
	}
}

// What Tag writes, ParseReply reads.
func TestReplyTagIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := turn.ParseReply(rapid.String().Draw(t, "text")).Text
		tag := turn.Reply{Current: true}.Tag(rapid.String().Draw(t, "id"))
		got := turn.ParseReply(tag + text)
		if tag != "" && got.Tag("") != tag || strings.TrimSpace(got.Text) != strings.TrimSpace(text) {
			t.Fatalf("%q + %q was read as %+v", tag, text, got)
		}
	})
}

// However a text is cut into pieces, what is shown of it is the text without
// its tags, and never part of a tag.
func TestUntagger(t *testing.T) {
	piece := rapid.SampledFrom([]string{"[[reply_to_current]]", "[[ reply_to: 4 ]]", "[[reply_to:", "[[", "[", "reply_to", "]]", " ", "\n", "hello", "x]]"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "text"), "")
		var u turn.Untagger
		var shown strings.Builder
		want := turn.ParseReply(text).Text
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			shown.WriteString(u.Add(rest[:n]))
			rest = rest[n:]
			if !strings.HasPrefix(strings.TrimSpace(want), strings.TrimSpace(shown.String())) {
				t.Fatalf("of %q was shown %q, want %q", text, shown.String(), want)
			}
		}
		shown.WriteString(u.Rest())
		if strings.TrimSpace(shown.String()) != strings.TrimSpace(want) {
			t.Fatalf("of %q was shown %q, want %q", text, shown.String(), want)
		}
	})
}

func TestUntaggerHoldsLittle(t *testing.T) {
	for _, c := range []struct{ text, first string }{
		{"hello", "h"}, {"[link]", "[l"}, {"[[x]]", "[[x"}, {"[[reply_to_x]]y", "[[reply_to_x]]"},
	} {
		var u turn.Untagger
		got := ""
		for i := 0; i < len(c.text) && got == ""; i++ {
			got = u.Add(c.text[i : i+1])
		}
		if got != c.first {
			t.Errorf("%q: first shown is %q, want %q", c.text, got, c.first)
		}
	}
}

func TestUntagged(t *testing.T) {
	m := goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
		{Kind: goclaw.PartThinking, Text: "[[reply_to_current]]"},
		{Kind: goclaw.PartText, Text: "[[reply_to_current]] hello"},
		{Kind: goclaw.PartText, Text: "[[reply_to:1]] stays"},
	}}
	got := turn.Untagged(m)
	if got.Parts[0].Text != "[[reply_to_current]]" || got.Parts[1].Text != "hello" || got.Parts[2].Text != "[[reply_to:1]] stays" {
		t.Errorf("%+v", got)
	}
	if m.Parts[1].Text != "[[reply_to_current]] hello" {
		t.Error("the message that was given has changed")
	}
}
