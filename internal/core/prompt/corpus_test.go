package prompt_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
)

// Each public definition file gives the prompt that it gave before: its body
// first, byte for byte, then what workers are told, with the tools that it
// comes down to. The corpus is not part of the repository, so the golden file
// has the prompts' hashes.
func TestGoldenPromptsOfTheCorpus(t *testing.T) {
	root := os.Getenv("GOCLAW_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	root = filepath.Join(root, "agents")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus of definition files: %v (GOCLAW_CORPUS says where it is)", err)
	}
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
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
		fmt.Fprintf(&b, "%s\n\t%s\n", filepath.ToSlash(rel), ofDefinition(t, definition.Parse(path, data, definition.Options{})))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "corpus.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("%s differs (go test -update accepts it):\n%s", path, diff)
	}
}

// ofDefinition is one line about a definition's prompt.
func ofDefinition(t *testing.T, d definition.Definition) string {
	if d.Status == definition.StatusRejected {
		return "rejected"
	}
	p := workerProfile()
	p.Definition, p.DefinitionSHA, p.PromptMode = d.Name, d.SHA256, d.PromptMode()
	p.Tools = d.ResolvedTools()
	if d.Typed.Inherit != nil {
		p.Inherit = d.Typed.Inherit
	}
	files := []goclaw.WorkspaceFile{}
	for _, name := range prompt.MainFiles() {
		files = append(files, goclaw.WorkspaceFile{Name: name, Path: workspaceDir + "/" + name, Content: "private canary of " + name})
	}
	in := input(p, files, realTools(append(slices.Clone(p.Tools), "nothing")...))
	in.Body = d.Body
	made := prompt.Assemble(in)
	text := prompt.Render(made)[0].Text
	if !strings.HasPrefix(text, d.Body) {
		t.Errorf("%s: the prompt does not begin with the body", d.Path)
	}
	for _, name := range goclaw.PrivateEntries() {
		if strings.Contains(strings.TrimPrefix(text, d.Body), "private canary of "+name) {
			t.Errorf("%s: the prompt holds %s", d.Path, name)
		}
	}
	names := make([]string, len(made.Tools))
	for i, tool := range made.Tools {
		names[i] = tool.Name
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s; %s; %d tokens, sha256 %s; asks for %s; of these there are %s",
		d.Status, p.PromptMode, prompt.Tokens(len(text)), hex.EncodeToString(sum[:8]), strings.Join(p.Tools, " "), strings.Join(names, " "))
}
