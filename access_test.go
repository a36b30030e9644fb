package goclaw_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

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

func TestAccessToArtifacts(t *testing.T) {
	main, chat := goclaw.MainKey("main"), goclaw.APIKey("main", "x")
	worker, sibling, cron := goclaw.SubagentKey("main", "w"), goclaw.SubagentKey("other", "v"), goclaw.CronKey("main", "j")
	spawned := func(session, requester goclaw.SessionKey, root string, inherit ...string) goclaw.Run {
		return goclaw.Run{Session: session, Requester: requester, Root: root, Trigger: goclaw.TriggerSpawn, Profile: goclaw.Profile{Strict: true, Inherit: inherit}}
	}
	turn := goclaw.Run{ID: "t", Session: main, Root: "t", Trigger: goclaw.TriggerUser}
	announced := goclaw.Run{Session: main, Root: "t", Trigger: goclaw.TriggerAnnouncement}
	open := spawned(sibling, main, "t")
	open.Profile.Strict = false
	for _, tt := range []struct {
		who   goclaw.SessionKey
		named []string
		root  string
		of    goclaw.Run
		want  bool
	}{
		{main, nil, "t", turn, true}, {main, nil, "later", turn, true}, {main, nil, "t", announced, true},
		{main, nil, "t", spawned(worker, main, "t"), true}, {main, nil, "t", spawned(worker, sibling, "t"), false},
		{main, nil, "t", goclaw.Run{Session: chat, Root: "t"}, false}, {chat, nil, "t", turn, false},
		{chat, nil, "t", spawned(worker, main, "t"), false}, {chat, nil, "t", spawned(worker, chat, "t"), true},
		{worker, nil, "t", spawned(worker, main, "t"), true}, {worker, nil, "t", turn, false}, {worker, nil, "t", announced, false},
		{worker, nil, "t", spawned(sibling, main, "t"), true}, {worker, nil, "t", spawned(sibling, main, "u"), false},
		{worker, nil, "", spawned(sibling, main, ""), false}, {worker, nil, "t", spawned(sibling, worker, "u", "USER.md"), true},
		{worker, nil, "t", spawned(sibling, main, "t", "USER.md"), false}, {worker, []string{"USER.md"}, "t", spawned(sibling, main, "t", "USER.md"), true},
		{worker, []string{"memory"}, "t", spawned(sibling, main, "t", "memory/x.md", "AGENTS.md"), true},
		{worker, []string{"memory/x.md"}, "t", spawned(sibling, main, "t", "memory"), false},
		{worker, goclaw.PrivateEntries(), "t", open, true}, {worker, goclaw.PrivateEntries()[1:], "t", open, false},
		{cron, nil, "c", goclaw.Run{Session: cron, Root: "b", Trigger: goclaw.TriggerCron}, true}, {cron, nil, "c", spawned(worker, cron, "c"), true},
		{cron, nil, "c", turn, false}, {worker, nil, "c", goclaw.Run{Session: cron, Root: "c", Trigger: goclaw.TriggerCron}, false},
	} {
		a := goclaw.Profile{Strict: tt.who.IsWorker(), Inherit: tt.named}.Access(tt.who, "r")
		a.Root = tt.root
		if ok, why := a.MaySee(goclaw.Thing{Artifact: &tt.of}); ok != tt.want || ok == (why != "") {
			t.Errorf("%s (%v, tree %s) reads what %s (%v, for %s, tree %s) left: %v, %q", tt.who, tt.named, tt.root, tt.of.Session, tt.of.Profile.Inherit, tt.of.Requester, tt.of.Root, ok, why)
		}
	}
}

// No worker ever reads what a main session's own turns left, nor, of others'
// workers, what came from a tree that is not its own.
func TestAccessToArtifactsOfOthers(t *testing.T) {
	keys := []goclaw.SessionKey{goclaw.MainKey("a"), goclaw.MainKey("b"), goclaw.APIKey("a", "x"), goclaw.SubagentKey("a", "1"), goclaw.SubagentKey("a", "2"), goclaw.CronKey("a", "j"), {}}
	rapid.Check(t, func(rt *rapid.T) {
		key := func(what string) goclaw.SessionKey { return rapid.SampledFrom(keys).Draw(rt, what) }
		root := func(what string) string { return rapid.SampledFrom([]string{"", "t", "u"}).Draw(rt, what) }
		a := goclaw.Access{Session: rapid.SampledFrom(keys[:6]).Draw(rt, "who"), Strict: rapid.Bool().Draw(rt, "strict"), Root: root("its tree")}
		r := goclaw.Run{
			Session: rapid.SampledFrom(keys[:6]).Draw(rt, "of"), Requester: key("requester"), Root: root("tree"),
			Trigger: rapid.SampledFrom([]goclaw.Trigger{goclaw.TriggerUser, goclaw.TriggerSpawn, goclaw.TriggerCron, goclaw.TriggerAnnouncement}).Draw(rt, "trigger"),
			Profile: goclaw.Profile{Strict: rapid.Bool().Draw(rt, "theirs")},
		}
		ok, _ := a.MaySee(goclaw.Thing{Artifact: &r})
		own := r.Session == a.Session || r.Requester == a.Session
		sibling := a.Session.IsWorker() && r.Trigger == goclaw.TriggerSpawn && r.Root == a.Root && a.Root != "" && (r.Profile.Strict || !a.Strict)
		if ok != (own || sibling) {
			rt.Fatalf("%+v reads what %+v left: %v", a, r, ok)
		}
	})
}

func ExampleAccess_Lifted() {
	worker := goclaw.Access{Strict: true, Named: []string{"AGENTS.md", "USER.md", "memory/plan.md"}}
	fmt.Println(worker.Lifted())
	fmt.Println(worker.MaySee(goclaw.Thing{Entry: "memory/diary.md"}))
	// Output:
	// [USER.md memory/plan.md]
	// false private to the main agent
}
