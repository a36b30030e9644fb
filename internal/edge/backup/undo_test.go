package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCarryOutUndoes puts everything back when one of the folders can't be put
// in its place.
func TestCarryOutUndoes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"home", "home staged"} {
		if err := os.Mkdir(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at(name), "which"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := carryOut([]move{
		{to: at("home"), aside: at("aside"), name: "old", from: at("home staged")},
		{to: at("project"), from: at("that is not there")},
	})
	if err == nil {
		t.Fatal("it was carried out")
	}
	for _, name := range []string{"home", "home staged"} {
		if which, err := os.ReadFile(filepath.Join(at(name), "which")); err != nil || string(which) != name {
			t.Errorf("%s holds %q, error %v", name, which, err)
		}
	}
	if _, err := os.Stat(at("aside")); err == nil {
		t.Error("the home is still aside")
	}
}
