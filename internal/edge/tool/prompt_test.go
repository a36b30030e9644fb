package tool_test

import (
	"encoding/json"
	"slices"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/file"
)

// TestPromptBytes holds the share of a worker's prompt that these tools take.
func TestPromptBytes(t *testing.T) {
	const most = 2700
	total := 0
	for _, tool := range append(file.Tools(file.Options{}), goclaw.Tool(exec.New(exec.Options{}))) {
		spec := tool.Spec()
		if !json.Valid(spec.Schema) {
			t.Errorf("%s: the schema is no JSON", spec.Name)
		}
		sent, err := json.Marshal(map[string]any{"name": spec.Name, "description": spec.Description, "input_schema": spec.Schema})
		if err != nil {
			t.Fatal(err)
		}
		total += len(sent) + len(",")
		idempotent := slices.Contains([]string{"read", "ls", "grep", "glob"}, spec.Name)
		if spec.Idempotent != idempotent {
			t.Errorf("%s: idempotent is %v", spec.Name, spec.Idempotent)
		}
	}
	t.Logf("the seven tools take %d bytes", total)
	if total > most {
		t.Errorf("the seven tools take %d bytes of every prompt, at most %d are allowed", total, most)
	}
}
