package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goclaw"
	"goclaw/internal/core/prompt"
)

// maxPrompts bounds the prompts that are kept assembled.
const maxPrompts = 64

// prompts keeps what was assembled last for each profile: turn after turn the
// same prompt is wanted, as long as nobody changes a file.
type prompts struct {
	mu   sync.Mutex
	last map[string]assembled
}

// assembled is a prompt, what it was made of, and how it is stored.
type assembled struct {
	files  []goclaw.WorkspaceFile
	prompt goclaw.Prompt        // shared: never changed
	system []goclaw.SystemBlock // the prompt rendered; shared as well
	blob   goclaw.Blob
}

// assemble builds the prompt of a profile from the files as they are now.
func (e *Engine) assemble(p goclaw.Profile) (assembled, error) {
	files, err := e.o.Files.Files(p.Workspace)
	if err != nil {
		return assembled{}, fmt.Errorf("read workspace %s: %w", p.Workspace, err)
	}
	key := promptKey(p)
	e.prompts.mu.Lock()
	defer e.prompts.mu.Unlock()
	if a, ok := e.prompts.last[key]; ok && slices.Equal(a.files, files) {
		return a, nil
	}
	specs := make([]goclaw.ToolSpec, 0, len(p.Tools))
	for _, name := range p.Tools {
		if t := e.tools[name]; t != nil {
			specs = append(specs, t.Spec())
		}
	}
	a := assembled{files: files, prompt: prompt.Assemble(prompt.Input{
		Profile: p, Files: files, Tools: specs, Facts: e.o.Facts,
	})}
	a.system = prompt.Render(a.prompt)
	if a.blob.Data, err = json.Marshal(a.prompt); err != nil {
		return assembled{}, fmt.Errorf("encode prompt: %w", err)
	}
	sum := sha256.Sum256(a.blob.Data)
	a.blob.SHA256 = hex.EncodeToString(sum[:])
	if e.prompts.last == nil || len(e.prompts.last) >= maxPrompts {
		e.prompts.last = map[string]assembled{}
	}
	e.prompts.last[key] = a
	return a, nil
}

// promptKey names all that a prompt takes from a profile.
func promptKey(p goclaw.Profile) string {
	return strings.Join([]string{
		p.Agent, p.Workspace, p.Model, p.Thinking, string(p.PromptMode),
		strings.Join(p.Tools, ","), strings.Join(p.Inherit, ","),
	}, "\x00")
}
