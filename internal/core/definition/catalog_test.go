package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/internal/core/definition"
)

func byScope(d definition.Definition) int { return int(d.Scope[0] - '0') }

func named(scope, name string) definition.Definition {
	d := definition.Parse(scope+"/"+name+".md", []byte("---\nname: "+name+"\ndescription: d\n---\nbody\n"), definition.Options{})
	d.Scope = scope
	return d
}

func TestOverlay(t *testing.T) {
	broken := definition.Parse("3/planner.md", []byte("---\nname: planner\ntools: ~\n---\nbody\n"), definition.Options{})
	broken.Scope = "3"
	c := definition.NewCatalog([]definition.Definition{
		named("0", "planner"), named("0", "explorer"), named("1", "Explorer"), named("2", "explorer"), broken,
		named("1", "Code Reviewer"), named("1", "code-reviewer"),
	}, byScope)
	if d, ok := c.Find("EXPLORER"); !ok || d.Path != "2/explorer.md" || d.Overrides != "1/Explorer.md" {
		t.Errorf("%v %s overrides %s", ok, d.Path, d.Overrides)
	}
	if d, ok := c.Find("planner"); !ok || d.Path != "3/planner.md" || d.Blocked() == "" {
		t.Errorf("a broken file gave its place to %s", d.Path)
	}
	for _, name := range []string{"Code Reviewer", "code-reviewer"} {
		if d, ok := c.Find(name); !ok || d.Status != definition.StatusRejected || !strings.Contains(d.Blocked(), "is also that of 1/") {
			t.Errorf("%s: %v %s %q", name, ok, d.Status, d.Blocked())
		}
	}
	if _, ok := c.Find("nobody"); ok {
		t.Error("found nobody")
	}
	if len(c.All()) != 7 || len(c.Active()) != 3 {
		t.Errorf("%d files, %d names", len(c.All()), len(c.Active()))
	}
}

// Whatever the order of the files, the nearest scope's file holds the name, and
// two in one scope are both rejected.
func TestNearestHoldsTheName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			scope, name string
		}
		count, nearest := map[place]int{}, map[string]string{}
		var all []definition.Definition
		for i := range rapid.IntRange(1, 12).Draw(t, "files") {
			at := place{rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(t, "scope"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			d := named(at.scope, at.name)
			d.Path = fmt.Sprintf("%s/%d.md", at.scope, i)
			all = append(all, d)
			count[at]++
			nearest[at.name] = max(nearest[at.name], at.scope)
		}
		c := definition.NewCatalog(all, byScope)
		for name, scope := range nearest {
			d, ok := c.Find(name)
			if !ok || d.Scope != scope {
				t.Fatalf("%s is of scope %s, want %s", name, d.Scope, scope)
			}
			if twins := count[place{scope, name}] > 1; twins != (d.Status == definition.StatusRejected) {
				t.Fatalf("%s: %s, twins %v", name, d.Status, twins)
			}
			if d.Overrides != "" && d.Overrides[:1] >= scope {
				t.Fatalf("%s overrides %s", d.Path, d.Overrides)
			}
		}
	})
}
