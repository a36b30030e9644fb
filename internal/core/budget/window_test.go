package budget

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBuiltInWindows(t *testing.T) {
	windows, err := NewWindows(nil)
	if err != nil {
		t.Fatal(err)
	}
	prices, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, tokens := range windows.builtIn {
		if _, ok := prices.builtIn[pattern]; !ok || tokens < 100_000 || tokens > 2_000_000 {
			t.Errorf("%s: %d tokens; it has a price: %v", pattern, tokens, ok)
		}
	}
	// The defaults of the configuration have a window.
	for model, want := range map[string]int{
		"anthropic/claude-sonnet-5-5": 1_000_000, "openai/gpt-5.5": 1_000_000, "openai/gpt-5.5-2026-04-23": 1_000_000,
		"anthropic/claude-haiku-4-5-20251001": 200_000, "demo/offline": 100_000,
		"anthropic/claude-sonnet-9": 0, "openai/gpt-5.5-pro": 0, "ollama/llama3": 0, "claude-sonnet-5-5": 0, "": 0,
	} {
		if got := windows.Of(model); got != want {
			t.Errorf("%s: %d tokens, want %d", model, got, want)
		}
	}
	if n := (Windows{}).Of("demo/offline"); n != 0 {
		t.Errorf("the zero table says %d", n)
	}
	// The header is there for those who read the file.
	var head struct{ AsOf, Note string }
	if err := json.Unmarshal(builtInWindows, &head); err != nil || head.AsOf == "" || head.Note == "" {
		t.Errorf("%+v, %v", head, err)
	}
}

func TestWindowOverrides(t *testing.T) {
	windows, err := NewWindows(map[string]int{"p/*": 1, "p/big*": 2, "p/big": 3, "openai/*": 4})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]int{"p/x": 1, "p/big-1": 2, "p/big": 3, "openai/gpt-5.5": 4, "demo/offline": 100_000, "q/x": 0} {
		if got := windows.Of(model); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
	for pattern, tokens := range map[string]int{"gpt": 5, "p/a*b": 5, "p/x": 0, "p/y": -1} {
		if _, err := NewWindows(map[string]int{pattern: tokens}); err == nil || !strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: %d: %v", pattern, tokens, err)
		}
	}
}
