package goclaw_test

import (
	"fmt"
	"slices"
	"testing"

	"goclaw"
)

func TestAccessToEntries(t *testing.T) {
	all := goclaw.PrivateEntries()
	without := func(names ...string) []string {
		return slices.DeleteFunc(goclaw.PrivateEntries(), func(e string) bool { return slices.Contains(names, e) })
	}
	tests := []struct {
		strict         bool
		named          []string
		hidden, lifted []string
		see, not       []string
	}{
		{false, []string{"USER.md"}, nil, nil, all, nil},
		{true, nil, all, nil, []string{"README.md", "AGENTS.md", "src/SOUL.md"}, append(all, "memory/x.md", ".git/config")},
		{true, []string{"AGENTS.md", "docs/a.md"}, all, nil, []string{"docs/a.md"}, all},
		{true, []string{"USER.md", "AGENTS.md", "USER.md"}, without("USER.md"), []string{"USER.md"}, []string{"USER.md"}, []string{"SOUL.md"}},
		{true, []string{"memory"}, without("memory"), []string{"memory"}, []string{"memory", "memory/a/b.md"}, []string{"MEMORY.md"}},
		{true, []string{"./memory/x.md"}, all, []string{"memory/x.md"}, []string{"memory/x.md"}, []string{"memory", "memory/x.mdx", "memory/y.md"}},
		{true, []string{"memory/deep/", ".git"}, without(".git"), []string{".git", "memory/deep"}, []string{"memory/deep/a.md", ".git/HEAD"}, []string{"memory/a.md"}},
		{true, []string{"user.md", "", ".", "..", "/", "x/../.."}, all, nil, nil, all},
		{true, []string{"memory/../USER.md"}, without("USER.md"), []string{"USER.md"}, []string{"USER.md"}, []string{"memory"}},
	}
	for _, tt := range tests {
		a := goclaw.Profile{Strict: tt.strict, Inherit: tt.named}.Access(goclaw.SubagentKey("main", "w"), "r")
		if got := a.Hidden(); !slices.Equal(got, tt.hidden) {
			t.Errorf("%v: hidden %v, want %v", tt.named, got, tt.hidden)
		}
		if got := a.Lifted(); !slices.Equal(got, tt.lifted) {
			t.Errorf("%v: lifted %v, want %v", tt.named, got, tt.lifted)
		}
		for _, e := range tt.see {
			if ok, why := a.MaySee(goclaw.Thing{Entry: e}); !ok || why != "" {
				t.Errorf("%v: %s is refused: %q", tt.named, e, why)
			}
		}
		for _, e := range tt.not {
			if ok, why := a.MaySee(goclaw.Thing{Entry: e}); ok || why == "" {
				t.Errorf("%v: %s may be seen: %q", tt.named, e, why)
			}
		}
	}
}

func TestAccessToSessions(t *testing.T) {
	key := func(s string) goclaw.SessionKey {
		k, err := goclaw.ParseSessionKey(s)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	main, chat, worker := "agent:main:main", "agent:main:telegram:direct:7", "agent:main:subagent:w"
	for _, tt := range []struct {
		who, what, requester string
		want                 bool
	}{
		{main, main, "", true}, {main, chat, "", true}, {main, worker, "", true}, {main, worker, chat, true},
		{main, "agent:other:main", "", false}, {main, "agent:other:subagent:w", main, true},
		{chat, chat, "", true}, {chat, main, "", false}, {chat, worker, chat, true}, {chat, worker, main, false},
		{chat, "agent:main:telegram:direct:8", "", false}, {chat, "agent:main:api:user:x", "", false},
		{worker, worker, main, true}, {worker, main, "", false}, {worker, "agent:main:subagent:v", main, false},
		{worker, "agent:main:subagent:v", worker, true}, {"agent:main:cron:j", main, "", false}, {"agent:main:cron:j", "agent:main:cron:j", "", true},
	} {
		thing := goclaw.Thing{Session: key(tt.what)}
		if tt.requester != "" {
			thing.Requester = key(tt.requester)
		}
		if ok, why := (goclaw.Access{Session: key(tt.who)}).MaySee(thing); ok != tt.want || ok == (why != "") {
			t.Errorf("%s sees %s of %q: %v, %q", tt.who, tt.what, tt.requester, ok, why)
		}
	}
}

func ExampleAccess_Lifted() {
	worker := goclaw.Access{Strict: true, Named: []string{"AGENTS.md", "USER.md", "memory/plan.md"}}
	fmt.Println(worker.Lifted())
	fmt.Println(worker.MaySee(goclaw.Thing{Entry: "memory/diary.md"}))
	// Output:
	// [USER.md memory/plan.md]
	// false private to the main agent
}
