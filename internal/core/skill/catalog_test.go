package skill_test

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/core/skill"
)

// all has every program and variable.
var all = skill.Facts{OS: "linux", Bin: func(string) bool { return true }, Env: func(string) bool { return true }}

func source(scope string, rank int, name, head string) skill.Source {
	path := scope + "/" + name + "/SKILL.md"
	return skill.Source{
		Path: path, Location: path, Folder: name, Scope: scope, Rank: rank,
		Data: fmt.Appendf(nil, "---\nname: %s\ndescription: From %s.\n%s---\nDo.\n", name, scope, head),
	}
}

// shown says what became of each entry.
func shown(choices []skill.Choice) string {
	var b strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&b, "%s %s", c.Name, c.Path)
		if c.Overrides != "" {
			fmt.Fprintf(&b, " overrides %s", c.Overrides)
		}
		if !c.In {
			fmt.Fprintf(&b, ": %s", c.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestChoose(t *testing.T) {
	twin := source("home", 1, "twin", "")
	twin.Path, twin.Folder = "home/other/SKILL.md", "other"
	untrusted := source("workspace", 3, "a", "")
	untrusted.Untrusted = true
	refused := skill.Source{Path: "home/pipe/SKILL.md", Folder: "pipe", Scope: "home", Rank: 1, Refused: "is a pipe, not a file", Hint: "remove it"}
	c := skill.Build([]skill.Source{
		source("bundled", 0, "a", ""), source("bundled", 0, "twin", ""),
		source("home", 1, "a", ""), source("home", 1, "twin", ""), twin, refused,
		source("extra", 2, "a", ""), source("extra", 2, "mac", "requires: {os: [macos]}\n"), source("extra", 2, "git", "requires: {bins: [git, gh]}\n"),
		source("extra", 2, "any", "requires: {anyBins: [a, b]}\n"), source("extra", 2, "key", "requires: {env: [KEY]}\n"),
		source("extra", 2, "off", ""), untrusted,
	})
	facts := skill.Facts{OS: "linux", Bin: func(s string) bool { return s == "git" }, Env: func(string) bool { return false }}
	got, warnings := c.Choose(skill.Policy{Disabled: []string{"off", "gone"}}, facts)
	want := `a workspace/a/SKILL.md: its workspace is not trusted
a extra/a/SKILL.md overrides home/a/SKILL.md
a home/a/SKILL.md: overridden by extra/a/SKILL.md
a bundled/a/SKILL.md: overridden by extra/a/SKILL.md
any extra/any/SKILL.md: commands find none of the programs a, b
git extra/git/SKILL.md: commands don't find the program gh
key extra/key/SKILL.md: not set in the environment: KEY
mac extra/mac/SKILL.md: it is for darwin, and this is linux
off extra/off/SKILL.md: skills.disabled names it
pipe home/pipe/SKILL.md: rejected: is a pipe, not a file
twin home/other/SKILL.md: rejected: the name twin stands twice in this place, also in home/twin/SKILL.md; neither is used
twin home/twin/SKILL.md: rejected: the name twin stands twice in this place, also in home/other/SKILL.md; neither is used
twin bundled/twin/SKILL.md
`
	if diff := cmp.Diff(want, shown(got)); diff != "" {
		t.Error(diff)
	}
	if want := []string{`skills.disabled: there is no skill "gone"; goclaw skills list shows those there are`}; !slices.Equal(warnings, want) {
		t.Errorf("warnings: %q", warnings)
	}

	got, warnings = c.Choose(skill.Policy{Names: []string{"twin", "gits"}, Source: "agents.list[0].skills"}, all)
	if in := skill.List(got, skill.Limits{}).Listed; len(in) != 1 || in[0].Name != "twin" {
		t.Errorf("listed: %v", in)
	}
	if want := []string{`agents.list[0].skills: there is no skill "gits"; did you mean git?`}; !slices.Equal(warnings, want) {
		t.Errorf("warnings: %q", warnings)
	}
	if got, _ = c.Choose(skill.Policy{Names: []string{}}, all); skill.List(got, skill.Limits{}).Text != "" {
		t.Error("an empty list of names must mean none")
	}
}

// TestPrecedence: of random files, at most one of a name is in use, and it is
// one of the nearest trusted scope in which the name stands once.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []skill.Source
		for i := range rapid.IntRange(0, 12).Draw(t, "files") {
			rank := rapid.IntRange(0, 3).Draw(t, "rank")
			s := source(fmt.Sprint("scope", rank), rank, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), "")
			s.Path = fmt.Sprint(i)
			s.Untrusted = rank == 3
			if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
				s.Data = []byte("no frontmatter")
			}
			sources = append(sources, s)
		}
		want := map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			for rank := 2; rank >= 0 && want[name] == ""; rank-- {
				var here []string
				for _, s := range sources {
					if s.Rank == rank && s.Folder == name && s.Data[0] == '-' {
						here = append(here, s.Path)
					}
				}
				if len(here) == 1 {
					want[name] = here[0]
				}
			}
			if want[name] == "" {
				delete(want, name)
			}
		}
		rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		choices, _ := skill.Build(sources).Choose(skill.Policy{}, all)
		got := map[string]string{}
		for _, c := range choices {
			if !c.In {
				continue
			}
			if got[c.Name] != "" {
				t.Fatalf("two files for %s", c.Name)
			}
			got[c.Name] = c.Path
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestList(t *testing.T) {
	long := strings.Repeat("It is of great use to everybody who reads it ", 3)
	src := []skill.Source{
		source("bundled", 0, "zeta", ""),
		{Path: "p", Location: "skills/<x>/SKILL.md", Folder: "mid", Scope: "workspace", Rank: 3, Data: []byte("---\ndescription: 'Cuts & <b>pastes</b>, e.g. text. " + long + ". And more.'\n---\nx\n")},
		source("home", 1, "alpha", ""),
		source("home", 1, "hidden", "disable-model-invocation: true\n"),
	}
	choices, _ := skill.Build(src).Choose(skill.Policy{}, all)
	got := skill.List(choices, skill.Limits{})
	want := `<available_skills>
<skill><name>alpha</name><description>From home.</description><location>home/alpha/SKILL.md</location></skill>
<skill><name>mid</name><description>Cuts &amp; &lt;b&gt;pastes&lt;/b&gt;, e.g. text. ` + long + `. And more.</description><location>skills/&lt;x&gt;/SKILL.md</location></skill>
<skill><name>zeta</name><description>From bundled.</description><location>bundled/zeta/SKILL.md</location></skill>
</available_skills>`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Error(diff)
	}
	if len(got.Omitted) != 1 || got.Omitted[0].Why != "disable-model-invocation is set: only people may ask for it" {
		t.Errorf("omitted: %+v", got.Omitted)
	}

	full := utf8.RuneCountInString(got.Text)
	shorter := skill.List(choices, skill.Limits{Chars: full - 1})
	if len(shorter.Listed) != 3 || !strings.Contains(shorter.Text, ", e.g. text.</description>") {
		t.Errorf("%+v\n%s", shorter.Omitted, shorter.Text)
	}
	if o := shorter.Omitted[len(shorter.Omitted)-1]; o.Source != "descriptions of 3 skills" || o.Why != fmt.Sprintf("cut to their first sentences: skills.limits.maxSkillsPromptChars is %d", full-1) {
		t.Errorf("%+v", o)
	}
	few := skill.List(choices, skill.Limits{Count: 2})
	if len(few.Listed) != 2 || few.Listed[0].Name != "alpha" || few.Listed[1].Name != "mid" {
		t.Errorf("the nearest scopes go first: %+v", few.Listed)
	}
	if o := few.Omitted[1]; o.Source != "bundled/zeta/SKILL.md" || o.Why != "skills.limits.maxSkillsInPrompt is 2, and 3 skills could be listed" {
		t.Errorf("%+v", o)
	}
	none := skill.List(choices, skill.Limits{Chars: 60})
	if none.Text != "" || len(none.Listed) != 0 || len(none.Omitted) != 4 {
		t.Errorf("%+v", none)
	}
}

// TestListStaysWithin: whatever is listed is well-formed, sorted and within its
// limits, and each skill is either in it or left out with a reason.
func TestListStaysWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []skill.Source
		n := rapid.IntRange(0, 30).Draw(t, "skills")
		for i := range n {
			s := source("home", rapid.IntRange(0, 3).Draw(t, "rank"), fmt.Sprintf("skill-%02d", i), "")
			text := rapid.StringN(1, 300, -1).Draw(t, "description")
			s.Data = fmt.Appendf(nil, "---\ndescription: |\n  D %s\n---\nx\n", strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")), " "))
			sources = append(sources, s)
		}
		choices, _ := skill.Build(sources).Choose(skill.Policy{}, all)
		l := skill.Limits{Count: rapid.IntRange(1, 40).Draw(t, "count"), Chars: rapid.IntRange(50, 9000).Draw(t, "chars")}
		got := skill.List(choices, l)
		if utf8.RuneCountInString(got.Text) > l.Chars || len(got.Listed) > l.Count {
			t.Fatalf("%d characters, %d skills, allowed %+v", utf8.RuneCountInString(got.Text), len(got.Listed), l)
		}
		gone := 0
		for _, o := range got.Omitted {
			if strings.HasSuffix(o.Source, "SKILL.md") {
				gone++
			}
		}
		if len(got.Listed)+gone != n {
			t.Fatalf("%d listed, %d left out, of %d", len(got.Listed), gone, n)
		}
		if got.Text == "" {
			return
		}
		var parsed struct {
			Skill []struct {
				Name     string `xml:"name"`
				Location string `xml:"location"`
			} `xml:"skill"`
		}
		if err := xml.Unmarshal([]byte(got.Text), &parsed); err != nil {
			t.Fatalf("%v\n%s", err, got.Text)
		}
		if len(parsed.Skill) != len(got.Listed) {
			t.Fatalf("%d of %d skills in the text", len(parsed.Skill), len(got.Listed))
		}
		for i, s := range parsed.Skill {
			if s.Name != got.Listed[i].Name || i > 0 && s.Name <= got.Listed[i-1].Name {
				t.Fatalf("%d: %s", i, s.Name)
			}
		}
	})
}

func ExampleList() {
	catalog := skill.Build([]skill.Source{{
		Path: "/home/me/.goclaw/skills/tides/SKILL.md", Location: "/home/me/.goclaw/skills/tides/SKILL.md",
		Folder: "tides", Scope: "home", Rank: 1,
		Data: []byte("---\nname: tides\ndescription: Finds the next high tide. Use it for plans at the coast.\n---\n\nRun tides.sh.\n"),
	}})
	choices, _ := catalog.Choose(skill.Policy{}, skill.Facts{})
	fmt.Println(skill.List(choices, skill.Limits{Chars: 190}).Text)
	// Output:
	// <available_skills>
	// <skill><name>tides</name><description>Finds the next high tide.</description><location>/home/me/.goclaw/skills/tides/SKILL.md</location></skill>
	// </available_skills>
}
