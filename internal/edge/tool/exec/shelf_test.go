package exec_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// Commands see a skill's folder, nothing around it, and can't change it;
// wherever the home lies and whether other folders around it show.
func TestShelves(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		for _, around := range []bool{false, true} {
			var shelf string
			f := newFixture(t, box, func(o *exec.Options) {
				shelf = filepath.Join(o.Home, "skills", "tides")
				if around {
					o.ReadOnly = []string{filepath.Dir(o.Home)}
				}
				o.Shelves = func(p goclaw.Profile) []goclaw.Shelf {
					if !slices.Contains(p.Skills, "tides") {
						return nil
					}
					return []goclaw.Shelf{
						{Prefix: shelf + "/", Dir: shelf}, {Prefix: "goclaw://skills/inner/"},
						{Prefix: o.Home + "/", Dir: o.Home}, {Prefix: filepath.Dir(o.Home) + "/", Dir: filepath.Dir(o.Home)},
					}
				}
			})
			f.write("../goclaw.db", canary)
			f.write("../skills/other/SKILL.md", canary)
			f.write("../skills/tides/run.sh", "echo high tide\n")
			f.write("../skills/tides/data/x", "data")
			f.write("MEMORY.md", canary)
			if err := os.Symlink("../../goclaw.db", filepath.Join(shelf, "db")); err != nil {
				t.Fatal(err)
			}
			for _, f.strict = range []bool{false, true} {
				f.skills = nil
				f.says("cat "+shelf+"/run.sh 2>/dev/null || echo no", "no")
				f.skills = []string{"tides"}
				f.says("sh "+shelf+"/run.sh; cat "+shelf+"/data/x", "high tide\ndata")
				f.says("echo x 2>/dev/null > "+shelf+"/run.sh || echo no; touch "+shelf+"/new 2>/dev/null || echo no", "no\nno")
				f.says("cat "+shelf+"/db "+f.home+"/goclaw.db "+f.home+"/skills/other/SKILL.md 2>/dev/null || echo no", "no")
				f.says("ls -A "+f.home+"/skills/other 2>/dev/null; echo fine > y; cat y", "fine")
			}
			f.says("cat MEMORY.md 2>/dev/null || echo no", "no")
			if got := f.content("../skills/tides/run.sh"); got != "echo high tide\n" {
				t.Errorf("a command changed the skill: %q", got)
			}
		}
	})
}
