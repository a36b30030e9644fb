package file

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/internal/edge/tool"
)

const (
	maxSuggestions = 3
	maxSuggestWalk = 5000
)

// suggest names files in reach that p may have meant: similar names in the
// same folder, then the same name elsewhere.
func (c *call) suggest(ctx context.Context, p string) []string {
	rel, err := c.reach.Resolve(p)
	if err != nil {
		return nil
	}
	type candidate struct {
		path  string
		score int
	}
	var found []candidate
	want := strings.ToLower(path.Base(rel))
	if dir, err := c.reach.Dir(path.Dir(rel)); err == nil {
		entries, _, _ := dir.List()
		dir.Close()
		for _, e := range entries {
			name := strings.ToLower(e.Name())
			score := distance(want, name)
			if score > 1+len(want)/4 && stem(name) != stem(want) {
				continue
			}
			found = append(found, candidate{e.Path, score})
		}
	}
	if root, err := c.reach.Dir("."); err == nil {
		seen := 0
		_, _ = root.Walk(ctx, isGit, func(_ *tool.Dir, e tool.Entry) error {
			if seen++; seen > maxSuggestWalk {
				return fs.SkipAll
			}
			if strings.EqualFold(e.Name(), path.Base(rel)) {
				found = append(found, candidate{e.Path, len(want)})
			}
			return nil
		})
		root.Close()
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
	var names []string
	for _, f := range found {
		if len(names) < maxSuggestions && !slices.Contains(names, f.path) {
			names = append(names, f.path)
		}
	}
	return names
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// isGit skips the folders of version control.
func isGit(e tool.Entry) bool { return e.Name() == ".git" }

// distance is the number of single-byte edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
