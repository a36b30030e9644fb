package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHeartbeat(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "x.md")
	path := filepath.Join(dir, "HEARTBEAT.md")
	l := NewLoader(Options{FileMaxChars: 1000})
	reads := func(want string, wantErr string) {
		t.Helper()
		text, err := l.Heartbeat(dir)
		if text != want || (err == nil) != (wantErr == "") || err != nil && (!strings.Contains(err.Error(), wantErr) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q, %v; want %q, %s", text, err, want, wantErr)
		}
	}
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	reads("", "")
	put(path, "- look\r\n")
	reads("- look\n", "")
	before := l.Reads()
	reads("- look\n", "")
	if _, err := l.Files(dir, Names()); err != nil {
		t.Fatal(err)
	}
	if l.Reads() != before {
		t.Errorf("an unchanged file was read %d times again", l.Reads()-before)
	}
	put(path, strings.Repeat("- look\n", 1000))
	if text, err := l.Heartbeat(dir); err != nil || len(text) > 1000 || !strings.Contains(text, "dropped here") {
		t.Errorf("a long file: %d bytes, %v", len(text), err)
	}
	put(outside, "secret")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Skip("no links here:", err)
	}
	reads("", "is a link that leaves the workspace; it was not followed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	reads("", "HEARTBEAT.md in "+dir+" is a folder, not a file; it was not read")
	dir = filepath.Join(dir, "gone")
	reads("", "")
}
