package backup_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/edge/backup"
)

// member is an entry of an archive that a test makes by hand.
type member struct {
	name string
	text string
	mode fs.FileMode
	mute bool // the manifest does not name it
}

// forge makes an archive of its members with a manifest that change has had.
func forge(t testing.TB, members []member, change func(*backup.Manifest)) []byte {
	t.Helper()
	m := backup.Manifest{Format: 1, Version: "1.2.3", Database: "none"}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	put := func(name, text string, mode fs.FileMode) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range members {
		mode := one.mode
		if mode == 0 {
			mode = 0o600
		}
		if strings.HasSuffix(one.name, "/") && one.mode == 0 {
			mode = 0o755 | fs.ModeDir
		}
		put(one.name, one.text, mode)
		if one.mute {
			continue
		}
		e := backup.Entry{Path: one.name, Mode: "0600", Size: int64(len(one.text))}
		if !strings.HasSuffix(one.name, "/") {
			sum := sha256.Sum256([]byte(one.text))
			e.SHA256 = hex.EncodeToString(sum[:])
		}
		m.Entries = append(m.Entries, e)
	}
	if change != nil {
		change(&m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put("manifest.json", string(text), 0o600)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func workspace(in, path string) func(*backup.Manifest) {
	return func(m *backup.Manifest) { m.Workspaces = []backup.Workspace{{Agent: "a", In: in, Path: path}} }
}

// TestRefuses: nothing of these archives may reach the disk.
func TestRefuses(t *testing.T) {
	fine := member{name: "home/goclaw.json", text: "{}"}
	far := filepath.Join(t.TempDir(), "far")
	tests := []struct {
		name    string
		members []member
		change  func(*backup.Manifest)
		want    string
	}{
		{"a path that climbs", []member{fine, {name: "home/../../evil", text: "x"}}, nil, "leads to where nothing belongs"},
		{"a path that climbs at once", []member{{name: "../evil", text: "x"}}, nil, "leads to where nothing belongs"},
		{"a path that climbs in a workspace", []member{{name: "workspaces/a/../../evil", text: "x"}}, workspace("workspaces/a", far), "leads to where"},
		{"an absolute path", []member{{name: "/tmp/evil", text: "x"}}, nil, "leads to where nothing belongs"},
		{"another system's path", []member{{name: `home/..\evil`, text: "x"}}, nil, "leads to where nothing belongs"},
		{"a path beside the home", []member{{name: "homes/evil", text: "x"}}, nil, "leads to where nothing belongs"},
		{"the home as a file", []member{{name: "home", text: "x"}}, nil, "leads to where nothing belongs"},
		{"a workspace of nobody", []member{{name: "workspaces/b/evil", text: "x"}}, workspace("workspaces/a", far), "leads to where"},
		{"a workspace that climbs", []member{fine}, workspace("workspaces/..", far), "can't be"},
		{"a workspace within", []member{fine}, workspace("workspaces/a/b", far), "can't be"},
		{"a workspace somewhere", []member{fine}, workspace("workspaces/a", "far"), "can't be"},
		{"a link", []member{fine, {name: "home/agents", text: "/etc", mode: 0o777 | fs.ModeSymlink}}, nil, "a link"},
		{"a device", []member{{name: "home/agents", mode: 0o600 | fs.ModeDevice}}, nil, "neither file nor folder"},
		{"a file that is a folder", []member{{name: "home/agents", mode: 0o755 | fs.ModeDir}}, nil, "neither file nor folder"},
		{"a file in a file", []member{{name: "home/a", text: "x"}, {name: "home/a/b", text: "x"}}, nil, "file exists"},
		{"a name twice", []member{fine, fine}, nil, "twice"},
		{"a file and folder of one name", []member{{name: "home/a", text: "x"}, {name: "home/a/"}}, nil, "twice"},
		{"a control character", []member{{name: "home/a\nb", text: "x"}}, nil, "leads to where nothing belongs"},
		{"a lock", []member{{name: "home/lock"}}, nil, "does not belong into a backup"},
		{"a database's log", []member{{name: "home/goclaw.db-wal", text: "x"}}, nil, "does not belong into a backup"},
		{"what the manifest does not name", []member{fine, {name: "home/extra", text: "x", mute: true}}, nil, "does not name"},
		{"what is not there", []member{fine}, func(m *backup.Manifest) {
			m.Entries = append(m.Entries, backup.Entry{Path: "home/gone", Mode: "0600"})
		}, "is not there"},
		{"a wrong hash", []member{fine}, func(m *backup.Manifest) { m.Entries[0].SHA256 = strings.Repeat("0", 64) }, "is damaged"},
		{"a wrong size", []member{fine}, func(m *backup.Manifest) { m.Entries[0].Size++ }, "is damaged"},
		{"a database that is not there", []member{fine}, func(m *backup.Manifest) { m.Database = "sqlite" }, "that is not so"},
		{"a database that nobody names", []member{{name: "home/goclaw.db", text: "x"}}, nil, "that is not so"},
		{"a damaged database", []member{{name: "home/goclaw.db", text: "x"}}, func(m *backup.Manifest) { m.Database = "sqlite" }, "it is damaged"},
		{"a database of another schema", []member{{name: "home/goclaw.db", text: "a copy of the database"}}, func(m *backup.Manifest) { m.Database = "sqlite" }, "has schema version 7, not 0"},
		{"a newer format", []member{fine}, func(m *backup.Manifest) { m.Format = 2 }, "use the goclaw that wrote it (1.2.3), or a newer one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			refuses(t, forge(t, tt.members, tt.change), tt.want)
		})
	}
	refuses(t, nil, "no backup of goclaw, or was cut")
	refuses(t, []byte("a letter"), "no backup of goclaw, or was cut")
	var other bytes.Buffer
	z := zip.NewWriter(&other)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	refuses(t, other.Bytes(), "it has no manifest.json")
}

// refuses restores an archive into an empty place, where nothing may be
// afterwards.
func refuses(t *testing.T, archive []byte, want string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "in.zip")
	lay(t, dir, map[string]string{"in.zip": string(archive), "there/home/token": "mine"})
	s := site{dir: dir}
	for _, target := range []backup.Target{s.target(), {Home: filepath.Join(dir, "there", "home"), Force: true}} {
		target.Outside, target.CheckDatabase, target.Now = true, s.target().CheckDatabase, now
		before := tree(t, dir)
		_, err := backup.Restore(t.Context(), file, target)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "nothing was changed") != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want %q", err, want)
		}
		if after := tree(t, dir); !slices.Equal(after, before) {
			t.Errorf("it has touched something: %q", after)
		}
	}
}

// TestCut cuts an archive everywhere and changes each of its bytes: either it
// is refused, or what is restored is what was there.
func TestCut(t *testing.T) {
	s := newSite(t)
	r := s.write(t, s.source())
	whole, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	target := s.target()
	if _, err := backup.Restore(t.Context(), r.File, target); err != nil {
		t.Fatal(err)
	}
	want := tree(t, target.Home)
	try := func(what string, at int, data []byte) {
		t.Helper()
		dir := t.TempDir()
		file := filepath.Join(dir, "in.zip")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		target.Home = filepath.Join(dir, "home")
		_, err := backup.Restore(t.Context(), file, target)
		got := tree(t, target.Home)
		if err != nil && len(got) > 0 || err == nil && what == "cut" {
			t.Errorf("%s at %d: error %v, restored %q", what, at, err, got)
		}
		// Modes and times of entries are not hashed; the manifest's own text is
		// guarded by the archive's checksum.
		if err == nil && len(got) != len(want) {
			t.Errorf("%s at %d: restored %q", what, at, got)
		}
	}
	for at := 0; at < len(whole); at += 37 {
		try("cut", at, whole[:at])
		changed := slices.Clone(whole)
		changed[at] ^= 0x41
		try("changed", at, changed)
	}
}

// FuzzRestore gives anything for an archive: nothing but the home is ever made.
func FuzzRestore(f *testing.F) {
	f.Add([]byte("PK"))
	f.Add(forge(f, []member{{name: "home/goclaw.json", text: "{}"}, {name: "home/agents/"}}, nil))
	f.Add(forge(f, []member{{name: "home/../x", text: "x"}}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "in.zip")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Restore(t.Context(), file, backup.Target{
			Home: filepath.Join(dir, "home"), Now: now,
			CheckDatabase: func(context.Context, string) (int, error) { return 0, nil },
		})
		entries, readErr := os.ReadDir(dir)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil && len(entries) != 1 || err == nil && len(entries) != 2 {
			t.Errorf("error %v, and beside the archive: %v", err, entries)
		}
	})
}
