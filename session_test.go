package goclaw_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"goclaw"
	"pgregory.net/rapid"
)

func ExampleParseSessionKey() {
	key, err := goclaw.ParseSessionKey("agent:main:irc:group:%23go%3Anuts:thread:7")
	fmt.Println(key.Kind, key.Channel, key.PeerKind, key.Peer, key.Thread, err)
	fmt.Println(key)
	// Output:
	// channel irc group #go:nuts 7 <nil>
	// agent:main:irc:group:#go%3Anuts:thread:7
}

func TestParseSessionKey(t *testing.T) {
	channel := goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "telegram", PeerKind: "direct", Peer: "42"}
	threaded := channel
	threaded.PeerKind, threaded.Thread = "group", "a:b"
	tests := []struct {
		in   string
		want goclaw.SessionKey
		text string // canonical form, "" if it is in
	}{
		{"agent:main:main", goclaw.MainKey("main"), ""},
		{"agent:co-der_2:main", goclaw.MainKey("co-der_2"), ""},
		{"agent:main:telegram:direct:42", channel, ""},
		{"agent:main:telegram:group:42:thread:a%3Ab", threaded, ""},
		{"agent:main:telegram:group:42:thread:a%3ab", threaded, "agent:main:telegram:group:42:thread:a%3Ab"},
		{"agent:main:api:user:bob%20b", goclaw.APIKey("main", "bob b"), ""},
		{"agent:main:api:user:é", goclaw.APIKey("main", "é"), ""},
		{"agent:main:api:user:%C3%A9", goclaw.APIKey("main", "é"), "agent:main:api:user:é"},
		{"agent:main:api:user:%FF", goclaw.APIKey("main", "\xff"), ""},
		{"agent:main:subagent:0197", goclaw.SubagentKey("main", "0197"), ""},
		{"agent:main:spawn:0197", goclaw.SubagentKey("main", "0197"), "agent:main:subagent:0197"},
		{"agent:main:cron:daily", goclaw.CronKey("main", "daily"), ""},
		{"cron:daily", goclaw.CronKey("main", "daily"), "agent:main:cron:daily"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := goclaw.ParseSessionKey(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			want := tt.text
			if want == "" {
				want = tt.in
			}
			if got.String() != want {
				t.Errorf("String() = %q, want %q", got, want)
			}
		})
	}
}

func TestParseSessionKeyRefuses(t *testing.T) {
	tests := []struct{ in, why string }{
		{"", "part 1 is empty"},
		{"main", `start with "agent:"`},
		{"%61gent:main:main", `start with "agent:"`},
		{"agent:main", "want agent:"},
		{"agent::main", "part 2 is empty"},
		{"agent:Main:main", "not allowed"},
		{"agent:-x:main", "not allowed"},
		{"agent:" + strings.Repeat("a", 65) + ":main", "1 to 64"},
		{"agent:main:main:x", "nothing may follow main"},
		{"agent:main:main:", "part 4 is empty"},
		{"agent:main:subagent", "one id must follow"},
		{"agent:main:subagent:a:b", "one id must follow"},
		{"agent:main:cron", "one job id"},
		{"agent:main:api:42", "user:<id>"},
		{"agent:main:api:group:42", "user:<id>"},
		{"agent:main:telegram:direct", "a channel key is"},
		{"agent:main:telegram:direct:42:topic:7", "a channel key is"},
		{"agent:main:telegram:direct:42:thread", "a channel key is"},
		{"agent:main:telegram:secret:42", "want direct or group"},
		{"agent:main:tele gram:direct:42", "%20"},
		{"agent:main:telegram:direct:4\n2", "%0A"},
		{"agent:main:telegram:direct:4%", "unfinished escape"},
		{"agent:main:telegram:direct:4%2", "unfinished escape"},
		{"agent:main:telegram:direct:4%zz", "no escape"},
		{"agent:main:telegram:direct:\xff", "not UTF-8"},
		{"agent:main:%6dain:direct:42", "channel's name"},
		{"agent:main:%63ron:direct:42", "channel's name"},
		{"agent:main:spawn:" + strings.Repeat("a", 1024), "at most 1024"},
		// Short enough as written, too long in the canonical form.
		{"cron:" + strings.Repeat("a", 1019), "at most 1024"},
	}
	for _, tt := range tests {
		got, err := goclaw.ParseSessionKey(tt.in)
		if err == nil {
			t.Errorf("%q: accepted as %+v", tt.in, got)
			continue
		}
		if !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%q: error %q doesn't say %q", tt.in, err, tt.why)
		}
		if !got.IsZero() {
			t.Errorf("%q: an error comes with key %+v", tt.in, got)
		}
	}
}

func TestSessionKeyZero(t *testing.T) {
	var zero goclaw.SessionKey
	if zero.String() != "" || !zero.IsZero() || zero.IsWorker() {
		t.Errorf("zero key: %q, IsZero %v, IsWorker %v", zero, zero.IsZero(), zero.IsWorker())
	}
	back := goclaw.MainKey("main")
	if err := back.UnmarshalText(nil); err != nil || !back.IsZero() {
		t.Errorf("empty text gives %+v, %v", back, err)
	}
}

func TestSessionKeyIsWorker(t *testing.T) {
	for key, want := range map[goclaw.SessionKey]bool{
		goclaw.MainKey("a"):          false,
		goclaw.APIKey("a", "u"):      false,
		goclaw.SubagentKey("a", "1"): true,
		goclaw.CronKey("a", "j"):     true,
	} {
		if got := key.IsWorker(); got != want {
			t.Errorf("%s: IsWorker = %v", key, got)
		}
	}
}

// genPart draws a free part of a key: any bytes but none.
func genPart() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(1, 30, 60),
		rapid.StringMatching(`[:% \n\x7fa]{1,10}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 30), func(b []byte) string { return string(b) }),
	)
}

func genKey() *rapid.Generator[goclaw.SessionKey] {
	return rapid.Custom(func(t *rapid.T) goclaw.SessionKey {
		agent := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,63}`).Draw(t, "agent")
		part := genPart()
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return goclaw.MainKey(agent)
		case 1:
			return goclaw.SubagentKey(agent, part.Draw(t, "id"))
		case 2:
			return goclaw.CronKey(agent, part.Draw(t, "job"))
		case 3:
			return goclaw.APIKey(agent, part.Draw(t, "user"))
		}
		k := goclaw.SessionKey{
			Agent: agent, Kind: goclaw.KindChannel,
			Channel:  rapid.SampledFrom([]string{"telegram", "irc", "terminal", "x-1"}).Draw(t, "channel"),
			PeerKind: rapid.SampledFrom([]string{"direct", "group"}).Draw(t, "peer kind"),
			Peer:     part.Draw(t, "peer"),
		}
		if rapid.Bool().Draw(t, "threaded") {
			k.Thread = part.Draw(t, "thread")
		}
		return k
	})
}

func TestSessionKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := genKey().Draw(t, "key")
		back, err := goclaw.ParseSessionKey(key.String())
		if err != nil {
			t.Fatalf("%+v written as %q: %v", key, key, err)
		}
		if back != key {
			t.Fatalf("%q: got %+v, want %+v", key, back, key)
		}
		data, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		var fromJSON goclaw.SessionKey
		if err := json.Unmarshal(data, &fromJSON); err != nil || fromJSON != key {
			t.Fatalf("JSON %s: got %+v, %v; want %+v", data, fromJSON, err, key)
		}
	})
}

// Two different keys must never share a text: a peer could else be taken for
// another one.
func TestSessionKeysDoNotCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genKey().Draw(t, "a"), genKey().Draw(t, "b")
		if (a == b) != (a.String() == b.String()) {
			t.Fatalf("%+v and %+v are written %q and %q", a, b, a, b)
		}
	})
}

func FuzzParseSessionKey(f *testing.F) {
	for _, s := range []string{
		"agent:main:main", "agent:main:telegram:direct:42:thread:a%3Ab", "agent:a:spawn:1",
		"cron:x", "agent:main:%6dain:direct:x", "agent:a:api:user:%ff", "agent:a:cron:%", "::",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := goclaw.ParseSessionKey(s)
		if err != nil {
			if !key.IsZero() {
				t.Fatalf("%q: error and key %+v", s, key)
			}
			return
		}
		back, err := goclaw.ParseSessionKey(key.String())
		if err != nil || back != key {
			t.Fatalf("%q parses as %+v, whose text %q parses as %+v, %v", s, key, key, back, err)
		}
	})
}
