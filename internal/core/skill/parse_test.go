package skill_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/core/skill"
)

// said are the problems without hints, a line each.
func said(problems []skill.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d:%d %s: %s", p.Line, p.Col, p.Severity, p.Message))
	}
	return strings.Join(lines, "\n")
}

func TestParse(t *testing.T) {
	const good = "name: x\ndescription: Does x.\n"
	tests := []struct {
		name, dir, head string
		want            skill.File
		says            string
	}{
		{"plain", "x", good, skill.File{Name: "x", Description: "Does x."}, ""},
		{"all keys", "x", good + "license: MIT\ncompatibility: needs git\nmetadata: {author: me, version: \"1\"}\nallowed-tools: Read Bash(git:*)\n",
			skill.File{Name: "x", Description: "Does x.", License: "MIT", Compatibility: "needs git",
				Metadata: map[string]any{"author": "me", "version": "1"}, AllowedTools: []string{"Read", "Bash(git:*)"}},
			"7:1 notice: allowed-tools has no effect: a skill neither widens nor narrows what its reader may use"},
		{"tools with commas", "x", good + "allowed-tools: [Read, Write]\n",
			skill.File{Name: "x", Description: "Does x.", AllowedTools: []string{"Read", "Write"}},
			"4:1 notice: allowed-tools has no effect: a skill neither widens nor narrows what its reader may use"},
		{"folder differs", "y", good, skill.File{Name: "x", Description: "Does x."}, "2:7 warning: the name x differs from the folder's, y"},
		{"no name", "My Skill", "description: D.\n", skill.File{Name: "my-skill", Description: "D."}, "1:1 warning: the name is missing; the folder's is used: my-skill"},
		{"no slug", "x", "name: My Skill!\ndescription: D.\n", skill.File{Name: "my-skill", Description: "D."}, "2:7 warning: My Skill! is no name of a skill; it is used as my-skill"},
		{"name is a list", "x", "name: [a]\ndescription: D.\n", skill.File{Name: "x", Description: "D."}, "2:7 warning: the name must be a text, not a list; the folder's is used: x"},
		{"no name at all", "ü", "name: ß\ndescription: D.\n", skill.File{Description: "D."}, "2:7 error: the skill has no name"},
		{"no description", "x", "name: x\n", skill.File{Name: "x"}, "1:1 error: the description is missing: no agent could know when to use the skill"},
		{"empty description", "x", "name: x\ndescription: \" \"\n", skill.File{Name: "x"}, "3:1 error: the description is empty: no agent could know when to use the skill"},
		{"description is a list", "x", "name: x\ndescription: [a]\n", skill.File{Name: "x"}, "3:14 error: the description must be a text, not a list"},
		{"many lines", "x", "name: x\ndescription: |\n  Does x.\n\n  Use it\u200b often.\n", skill.File{Name: "x", Description: "Does x. Use it often."}, ""},
		{"colon", "x", "name: x\ndescription: Does this: x\n", skill.File{Name: "x", Description: "Does this: x"},
			"3:14 warning: the value holds a colon and is not quoted; it was read as one text to the end of the line"},
		{"near miss", "x", good + "licence: MIT\n", skill.File{Name: "x", Description: "Does x."}, "4:1 warning: unknown key \"licence\" was ignored"},
		{"decoration", "x", good + "version: 2\ncolor: red\n", skill.File{Name: "x", Description: "Does x."}, "4:1 notice: keys that mean nothing here were ignored: version, color"},
		{"hidden", "x", good + "disable-model-invocation: true\n", skill.File{Name: "x", Description: "Does x.", Hidden: true}, ""},
		{"openclaw", "x", good + `metadata: {"openclaw": {"emoji": "x", "os": ["macos", "linux"], "requires": {"bins": ["gh"], "anyBins": "a, b", "env": ["K"], "config": ["c"]}}}` + "\n",
			skill.File{Name: "x", Description: "Does x.", Needs: skill.Needs{OS: []string{"darwin", "linux"}, Bins: []string{"gh"}, AnyBins: []string{"a", "b"}, Env: []string{"K"}}},
			"4:127 notice: openclaw.requires.config is not checked here"},
		{"quoted JSON", "x", good + `metadata: '{"openclaw": {"requires": {"bins": ["gh"]}}}'` + "\n",
			skill.File{Name: "x", Description: "Does x.", Needs: skill.Needs{Bins: []string{"gh"}}}, ""},
		{"plain requires", "x", good + "requires:\n  bins: [gh]\n  os: [win32]\nmetadata:\n  goclaw: {always: true, requires: {bins: [gh, git]}}\n",
			skill.File{Name: "x", Description: "Does x.", Needs: skill.Needs{OS: []string{"windows"}, Bins: []string{"gh", "git"}, Always: true}}, ""},
		{"requires is a list", "x", good + "requires: [gh]\n", skill.File{Name: "x", Description: "Does x."}, "4:11 warning: requires must be a map; it was ignored"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := skill.Parse(tt.dir, []byte("---\n"+tt.head+"---\nDo it.\n"))
			tt.want.Body = "Do it.\n"
			if tt.want.Metadata == nil {
				got.Metadata = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.says, said(problems)); diff != "" {
				t.Error(diff)
			}
			for _, p := range problems {
				if p.Severity != skill.Notice && p.Hint == "" {
					t.Errorf("what is to be done? %+v", p)
				}
			}
		})
	}
}

func TestParseWithoutFrontmatter(t *testing.T) {
	for data, want := range map[string]string{
		"# Title\n":                      "1:1 error: the file has no frontmatter",
		"":                               "1:1 error: the file is empty",
		"---\nname: x\n":                 "1:1 error: the frontmatter that opens here has no closing ---",
		"---\nname: [\n---\n":            "2:7 error: not valid YAML: sequence end token ']' not found",
		"---\nname: x\xff\n---\n":        "2:8 error: the file is not text: the byte 0xff is no UTF-8",
		"---\ndescription: D.\n---\n \n": "1:1 warning: the name is missing; the folder's is used: dir\n4:1 warning: the skill has no instructions",
	} {
		if _, problems := skill.Parse("dir", []byte(data)); said(problems) != want {
			t.Errorf("%q:\n%s\nwant\n%s", data, said(problems), want)
		}
	}
}

// corpus is the folder of real files that others have written; it is no part
// of this repository.
func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("GOCLAW_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	dir = filepath.Join(dir, "skills")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("NOT TESTED: no corpus of real skills: %v; name its folder in GOCLAW_CORPUS", err)
	}
	return dir
}

// TestCorpus reads 60 skills that others have written. Those that are rejected
// are listed here, with the reason that their authors would be told.
func TestCorpus(t *testing.T) {
	root := corpus(t)
	rejected := map[string]string{}
	loaded, warned := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "SKILL.md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folder := filepath.Base(filepath.Dir(path))
		f, problems := skill.Parse(folder, data)
		worst := skill.Severity("")
		for _, p := range problems {
			t.Logf("%s: %s", p.Severity, p.In(rel))
			if p.Severity == skill.Error {
				rejected[filepath.ToSlash(rel)] = p.In(filepath.Base(rel))
			}
			if p.Severity != skill.Notice && worst == "" {
				worst = p.Severity
			}
		}
		if _, bad := rejected[filepath.ToSlash(rel)]; bad {
			return nil
		}
		loaded++
		if worst == skill.Warning {
			warned++
		}
		if f.Name != folder || f.Description == "" || utf8.RuneCountInString(f.Description) > skill.MaxDescription || !skill.IsName(f.Name) {
			t.Errorf("%s: %q: %q", rel, f.Name, f.Description)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d loaded, %d of them with warnings, %d rejected", loaded, warned, len(rejected))
	const (
		missing = "SKILL.md:1:1: the description is missing: no agent could know when to use the skill; add `description: …` with what the skill does and when to use it"
		noHead  = "SKILL.md:1:1: the file has no frontmatter; begin it with a line ---, then `name: …` and `description: …`, then another ---"
	)
	want := map[string]string{
		"EveryInc__compound-engineering-plugin/tests__fixtures__custom-paths__custom-skills/custom-skill/SKILL.md": missing,
		"EveryInc__compound-engineering-plugin/tests__fixtures__custom-paths__skills/default-skill/SKILL.md":       missing,
		"bmad-code-org__BMAD-METHOD/web-bundles/product-brief-coach/SKILL.md":                                      noHead,
		"bmad-code-org__BMAD-METHOD/web-bundles/ux-coach/SKILL.md":                                                 noHead,
	}
	if diff := cmp.Diff(want, rejected); diff != "" {
		t.Error(diff)
	}
	if loaded+len(rejected) != 60 {
		t.Errorf("%d files", loaded+len(rejected))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("x", "---\nname: x\ndescription: D: e\nmetadata: {\"openclaw\": {\"requires\": {\"bins\": [\"gh\"]}}}\n---\nbody\n")
	f.Add("y", "---\nname: [a\n---\n")
	f.Add("", "---\nrequires: {os: macos, env: \"A B\"}\nallowed-tools: Read, Write\ndescription: |\n  a\n  b\n---\n")
	f.Fuzz(func(t *testing.T, dir, data string) {
		file, problems := skill.Parse(dir, []byte(data))
		bad := slices.ContainsFunc(problems, func(p skill.Problem) bool { return p.Severity == skill.Error })
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || p.Message == "" {
				t.Errorf("%+v", p)
			}
			if text := p.In("f"); strings.Contains(text, "\n") {
				t.Errorf("not one line: %q", text)
			}
		}
		if bad {
			return
		}
		if !skill.IsName(file.Name) {
			t.Errorf("name %q", file.Name)
		}
		if d := file.Description; d == "" || utf8.RuneCountInString(d) > skill.MaxDescription || strings.ContainsAny(d, "\n\r\t\x00") || !utf8.ValidString(d) {
			t.Errorf("description %q", d)
		}
	})
}
