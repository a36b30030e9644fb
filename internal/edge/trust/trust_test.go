package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw/internal/edge/trust"
)

func folders(t testing.TB) (home, ws string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, ws = filepath.Join(base, "home"), filepath.Join(base, "project")
	for _, dir := range []string{filepath.Join(home, "workspace"), ws} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home, ws
}

func wants(t *testing.T, s *trust.Store, ws string, want bool) {
	t.Helper()
	got, err := s.Trusted(ws)
	if err != nil || got != want {
		t.Errorf("Trusted(%s) = %v, %v; want %v", ws, got, err, want)
	}
}

func TestTrust(t *testing.T) {
	home, ws := folders(t)
	s, other := trust.New(home), trust.New(home)
	wants(t, s, ws, false)
	wants(t, s, filepath.Join(home, "workspace"), true)
	wants(t, s, home, false)
	if _, err := os.Stat(s.Path()); err == nil {
		t.Error("a question made the file")
	}
	link := filepath.Join(filepath.Dir(ws), "link")
	if err := os.Symlink(ws, link); err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_700_000_000_000)
	real, err := s.Trust(link, now)
	if err != nil || real != ws {
		t.Fatalf("Trust: %q, %v", real, err)
	}
	if _, err := s.Trust(ws, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*trust.Store{s, other} {
		wants(t, store, ws, true)
		wants(t, store, link, true)
		wants(t, store, filepath.Dir(ws), false)
	}
	list, err := other.List()
	if err != nil || len(list) != 1 || list[0].Workspace != ws || list[0].Since.Time().UnixMilli() != now.UnixMilli() {
		t.Errorf("List: %+v, %v", list, err)
	}
	if info, err := os.Stat(s.Path()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if found, err := other.Revoke(link); !found || err != nil {
		t.Errorf("Revoke: %v, %v", found, err)
	}
	wants(t, s, ws, false)
	if found, err := s.Revoke(ws); found || err != nil {
		t.Errorf("Revoke again: %v, %v", found, err)
	}
}

// Trust is for the folder, not for whatever takes its name.
func TestTrustFollowsTheFolder(t *testing.T) {
	home, ws := folders(t)
	s := trust.New(home)
	if _, err := s.Trust(ws, time.Now()); err != nil {
		t.Fatal(err)
	}
	elsewhere := ws + "-2"
	if err := os.Rename(ws, elsewhere); err != nil {
		t.Fatal(err)
	}
	wants(t, s, elsewhere, false)
	if err := os.Symlink(elsewhere, ws); err != nil {
		t.Fatal(err)
	}
	wants(t, s, ws, false)
	if found, err := s.Revoke(ws); !found || err != nil {
		t.Errorf("what was trusted by this name can't be revoked: %v, %v", found, err)
	}
	if _, err := s.Trust(filepath.Join(home, "none"), time.Now()); err == nil {
		t.Error("a folder that doesn't exist was trusted")
	}
	if err := os.Remove(ws); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trusted(ws); err == nil {
		t.Error("no error for a folder that doesn't exist")
	}
}

func TestBrokenFile(t *testing.T) {
	home, ws := folders(t)
	s := trust.New(home)
	if err := os.WriteFile(s.Path(), []byte(`{"trusted": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	ok, err := s.Trusted(ws)
	if ok || err == nil || !strings.Contains(err.Error(), s.Path()) || !strings.Contains(err.Error(), "mend it") {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := s.Trust(ws, time.Now()); err == nil {
		t.Error("a broken file was replaced")
	}
	wants(t, s, filepath.Join(home, "workspace"), true)
}

// Several processes trust at the same time: the file stays whole.
func TestTogether(t *testing.T) {
	home, ws := folders(t)
	var wg sync.WaitGroup
	for i := range 8 {
		dir := filepath.Join(ws, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := trust.New(home).Trust(dir, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(home, "trusted.json.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if list, err := trust.New(home).List(); err != nil || len(list) == 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func Example() {
	home, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	project, err := os.MkdirTemp("", "project-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(project)
	s := trust.New(home)
	fmt.Println(s.Trusted(project))
	if _, err := s.Trust(project, time.Now()); err != nil {
		panic(err)
	}
	fmt.Println(s.Trusted(project))
	// Output:
	// false <nil>
	// true <nil>
}
