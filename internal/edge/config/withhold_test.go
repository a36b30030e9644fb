package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWithhold takes every secret out, wherever it stands, and nothing else.
func TestWithhold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.json")
	text := `{
	// the key's comment: hunter2
	"models": {"providers": {
		"openai": {"apiKey": "sk-\u0068ush", "headers": {"X-One": "hush-1", "X-Two": "hush-2"}, "models": ["m"]}, /* kept */
	}},
	"gateway": {"token": "hush-token", "addr": "127.0.0.1:1"},
	"database": {"url": "postgres://me:hush-db@localhost/x"},
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Fatal(err)
	}
	data, keys, err := Withhold(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"models.providers.openai.apiKey", "models.providers.openai.headers.X-One", "models.providers.openai.headers.X-Two",
		"gateway.token", "database.url"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	kept := strings.NewReplacer(`"sk-\u0068ush"`, `""`, `"hush-1"`, `""`, `"hush-2"`, `""`, `"hush-token"`, `""`, `"postgres://me:hush-db@localhost/x"`, `""`).Replace(text)
	if string(data) != kept {
		t.Errorf("got:\n%s\nwant:\n%s", data, kept)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "models.providers.openai.apiKey is empty") {
		t.Errorf("what was withheld is not asked for: %v", err)
	}

	plain := `{"agents": {"defaults": {"model": "openai/m"}}}`
	if err := os.WriteFile(path, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, keys, err := Withhold(path); err != nil || string(data) != plain || keys != nil {
		t.Errorf("got %s, keys %q, error %v", data, keys, err)
	}
	if err := os.WriteFile(path, []byte(`{"a": hunter2`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Withhold(path); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a broken file: error %v", err)
	}
}
