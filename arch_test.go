package goclaw_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The import rules of the house, each with its reason. They bind product code;
// a package's own tests may reach further.
var rules = []struct {
	dir   string   // packages at or below it
	allow []string // module packages that they may import; "a/*" is anything below a
	deny  []string // other packages that they may not import
	why   string
}{
	{".", nil, []string{"os", "net", "net/http", "database/sql", "io/ioutil"}, "the root holds nouns and ports: standard library only, no I/O"},
	{"internal/core", []string{"goclaw", "goclaw/internal/core/*"}, []string{"os", "os/exec", "net", "net/http", "database/sql"}, "core decides: no I/O"},
	{"internal/runtime", []string{"goclaw", "goclaw/internal/core/*"}, nil, "runtime acts through interfaces: never an edge, never a sibling, never a vendor"},
	{"internal/edge", []string{"goclaw"}, nil, "an edge adapts one thing of the world: never core, runtime or another edge"},
}

func TestImports(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		seen++
		checkImports(t, filepath.ToSlash(file))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d files were checked: the walk is broken", seen)
	}
}

func checkImports(t *testing.T, file string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	dir := path.Dir(file)
	for _, spec := range f.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if !below(dir, r.dir) {
				continue
			}
			if why := violates(dir, imp, r.allow, r.deny); why != "" {
				t.Errorf("%s imports %s: %s (%s)", file, imp, why, r.why)
			}
		}
	}
}

func below(dir, root string) bool {
	if root == "." {
		return dir == "."
	}
	return dir == root || strings.HasPrefix(dir, root+"/")
}

func violates(dir, imp string, allow, deny []string) string {
	if slices.Contains(deny, imp) {
		return "forbidden here"
	}
	if imp == "goclaw" || strings.HasPrefix(imp, "goclaw/") {
		ok := slices.ContainsFunc(allow, func(a string) bool {
			base, any := strings.CutSuffix(a, "/*")
			return imp == a || any && strings.HasPrefix(imp, base+"/")
		})
		if !ok && !samePort(dir, imp) {
			return "not allowed from here"
		}
		return ""
	}
	if dir == "." && strings.Contains(imp, ".") {
		return "the root imports the standard library only"
	}
	if strings.HasPrefix(dir, "internal/runtime") && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
		return "no vendor below runtime"
	}
	return ""
}

// samePort lets siblings below one port folder share the code that stands in
// that folder, and a package use its own subpackages.
func samePort(dir, imp string) bool {
	imp = strings.TrimPrefix(imp, "goclaw/")
	return strings.HasPrefix(imp, dir+"/") || imp == path.Dir(dir) && strings.Count(imp, "/") >= 2
}
