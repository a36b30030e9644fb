package recall

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed notes/*.md
var noteFiles embed.FS

//go:embed questions.txt
var questionFile string

// question is asked with other words than those of its answer, which is the
// section of the notes under that heading.
type question struct{ heading, text string }

// questions returns the half for tuning, and the half that is reported.
func questions() (tuning, reported []question) {
	i := 0
	for line := range strings.Lines(questionFile) {
		heading, text, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		if i%2 == 0 {
			tuning = append(tuning, question{heading, text})
		} else {
			reported = append(reported, question{heading, text})
		}
		i++
	}
	return tuning, reported
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
