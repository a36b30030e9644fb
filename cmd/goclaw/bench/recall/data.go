package recall

import (
	"crypto/sha256"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed notes/*.md
var noteFiles embed.FS

//go:embed questions.txt
var questionFile string

//go:embed fresh.txt
var freshFile string

// question is asked about the section of the notes under that heading.
type question struct{ heading, text string }

// parse reads a file of headings and questions.
func parse(file string) (all []question) {
	for line := range strings.Lines(file) {
		if heading, text, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			all = append(all, question{heading, text})
		}
	}
	return all
}

// questions returns those in other words than their answers': a half for tuning,
// a half that is only measured, and those that were written later, and measured
// when nothing was tuned any more.
func questions() (tuning, held, fresh []question) {
	for i, q := range parse(questionFile) {
		if i%2 == 0 {
			tuning = append(tuning, q)
		} else {
			held = append(held, q)
		}
	}
	return tuning, held, parse(freshFile)
}

// ownWords asks for every third section by four words of its text that chance,
// the same each time, has chosen.
func ownWords() (all []question, err error) {
	names, err := fs.Glob(noteFiles, "notes/*.md")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, name := range names {
		text, err := noteFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			heading, body, _ := strings.Cut(section, "\n")
			words := strings.FieldsFunc(strings.ToLower(body), func(r rune) bool { return r < 'a' || r > 'z' })
			words = slices.DeleteFunc(words, func(w string) bool {
				return len(w) < 5 || strings.Contains(strings.ToLower(heading), w)
			})
			slices.Sort(words)
			words = slices.Compact(words)
			if n++; n%3 != 0 || len(words) < 8 {
				continue
			}
			lot := func(w string) string { sum := sha256.Sum256([]byte(heading + " " + w)); return string(sum[:]) }
			slices.SortFunc(words, func(a, b string) int { return strings.Compare(lot(a), lot(b)) })
			all = append(all, question{heading, strings.Join(words[:4], " ")})
		}
	}
	return all, nil
}

// layOut writes the notes into a workspace.
func layOut(workspace string) error {
	if err := os.MkdirAll(filepath.Join(workspace, "memory"), 0o700); err != nil {
		return err
	}
	names, err := fs.Glob(noteFiles, "notes/*.md")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := noteFiles.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(workspace, "memory", filepath.Base(name)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// headingOf is the section that a chunk under this title belongs to.
func headingOf(title string) string {
	_, section, _ := strings.Cut(title, " > ")
	return section
}
