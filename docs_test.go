package goclaw_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/security.md names a test for each line of its threat model: they exist.
func TestSecurityIsTested(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, ".txtar"):
			there["TestScripts/"+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
			there[filepath.Base(path)] = true
		case strings.HasSuffix(path, "_test.go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
				there[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[\\w/]+|\\w+\\.txtar)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 80 {
		t.Errorf("only %d tests are named: the pattern is broken", len(named))
	}
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", m[1])
		}
	}
	// Each line of the threat model says what holds it and names a test, but for
	// the one that nothing holds.
	_, model, _ := strings.Cut(string(text), "\n## Threats\n")
	model, _, _ = strings.Cut(model, "\n## Secrets in logs")
	for line := range strings.Lines(model) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.HasPrefix(line, "| | ") {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| | ") {
				t.Errorf("want three cells: %s", line)
			}
			continue
		}
		if !strings.Contains(cells[2], "`Test") && !strings.HasPrefix(cells[1], "nothing: ") {
			t.Errorf("no test for: %s", line)
		}
	}
}
