package backup

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	format       = 1
	manifestName = "manifest.json"
	homePrefix   = "home/"
	outsideRoot  = "workspaces/"
	databaseName = "goclaw.db"

	maxManifest = 256 << 20
)

// Manifest says what an archive holds.
type Manifest struct {
	Format    int       `json:"format"`
	Version   string    `json:"goclaw"` // that wrote it
	CreatedAt time.Time `json:"createdAt"`
	Home      string    `json:"home"`             // as it was called
	Database  string    `json:"database"`         // sqlite, postgres (not in the archive) or none
	Schema    int       `json:"schema,omitempty"` // of the database
	Secrets   bool      `json:"secrets"`          // secrets are in it in clear

	Workspaces []Workspace `json:"workspaces"`
	Withheld   []string    `json:"withheld"` // keys of goclaw.json whose secrets were taken out
	Left       []Left      `json:"left"`
	Entries    []Entry     `json:"entries"`
}

// Workspace is an agent's folder.
type Workspace struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`         // absolute
	In    string `json:"in,omitempty"` // the archive's folder; "": it is not in the archive
}

// Left is something that is not in the archive.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Entry is a file of the archive, or a folder, whose path ends with a slash.
type Entry struct {
	Path   string `json:"path"`
	Mode   string `json:"mode"` // 0600
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // lower-case hex; none of a folder
}

func (e Entry) isDir() bool { return strings.HasSuffix(e.Path, "/") }

func (e Entry) perm() fs.FileMode {
	mode, err := strconv.ParseUint(e.Mode, 8, 9)
	if err != nil {
		return 0o600
	}
	return fs.FileMode(mode)
}

// nameable reports whether a path can be kept under its own name wherever it
// is unpacked.
func nameable(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsRune(path, '\\') && !strings.ContainsFunc(path, unicode.IsControl) &&
		fs.ValidPath(path) && filepath.IsLocal(filepath.FromSlash(path))
}

// ephemeral are files of a home that mean nothing but to the processes that use
// it, by their name.
func ephemeral(name string) bool {
	return fleeting(name) || journal(name) || strings.HasSuffix(name, ".new") || strings.HasPrefix(name, ".write-")
}

// fleeting are those that are there in a home that is empty, too.
func fleeting(name string) bool {
	return name == "lock" || name == "gateway.json" || name == "secrets.lock" || strings.HasPrefix(name, tempPrefix)
}

// journal are those without which a database is another one, and with which it
// is too.
func journal(name string) bool {
	return name == databaseName+"-wal" || name == databaseName+"-shm" || name == databaseName+"-journal"
}

// readManifest reads the manifest and checks it against what the archive holds.
// It returns the entries' files.
func readManifest(z *zip.Reader) (m Manifest, files map[string]*zip.File, err error) {
	files = map[string]*zip.File{}
	for _, f := range z.File {
		if files[f.Name] != nil {
			return m, nil, fmt.Errorf("it holds %q twice", f.Name)
		}
		files[f.Name] = f
	}
	text := files[manifestName]
	if text == nil {
		return m, nil, errors.New("it has no manifest.json; it is no backup of goclaw, or only a part of one")
	}
	delete(files, manifestName)
	r, err := text.Open()
	if err != nil {
		return m, nil, fmt.Errorf("manifest.json: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err := errors.Join(err, r.Close()); err != nil {
		return m, nil, fmt.Errorf("manifest.json: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, nil, fmt.Errorf("manifest.json: %w", err)
	}
	if m.Format != format {
		return m, nil, fmt.Errorf("it has the format %d, but this goclaw knows only %d: use the goclaw that wrote it (%s), or a newer one", m.Format, format, m.Version)
	}
	return m, files, m.check(files)
}

// check refuses an archive whose manifest does not name exactly what it holds,
// or that holds what does not belong into a home.
func (m *Manifest) check(files map[string]*zip.File) error {
	folders := []string{strings.TrimSuffix(homePrefix, "/")}
	places := map[string]string{}
	for _, w := range m.Workspaces {
		in, outside := strings.CutPrefix(w.In, outsideRoot)
		if !outside {
			continue
		}
		if place, twice := places[in]; strings.Contains(in, "/") || !nameable(in) || twice && place != w.Path || !filepath.IsAbs(w.Path) {
			return fmt.Errorf("its workspace %q of %q can't be", w.In, w.Path)
		}
		places[in] = w.Path
		folders = append(folders, w.In)
	}
	seen := map[string]bool{}
	for _, e := range m.Entries {
		f := files[e.Path]
		path := strings.TrimSuffix(e.Path, "/")
		folder, inside := "", path
		for _, one := range folders {
			if rest, ok := strings.CutPrefix(path, one+"/"); ok {
				folder, inside = one, rest
			} else if path == one && one != folders[0] && e.isDir() {
				folder, inside = one, "" // a workspace itself
			}
		}
		top, _, _ := strings.Cut(inside, "/")
		switch {
		case !nameable(path) || folder == "":
			return fmt.Errorf("its entry %q leads to where nothing belongs", e.Path)
		case folder == folders[0] && (fleeting(top) || journal(top)):
			return fmt.Errorf("its entry %q does not belong into a backup", e.Path)
		case seen[path]:
			return fmt.Errorf("its manifest names %q twice", e.Path)
		case f == nil:
			return fmt.Errorf("its manifest names %q, but it is not there", e.Path)
		case e.isDir() != f.Mode().IsDir() || !e.isDir() && !f.Mode().IsRegular():
			return fmt.Errorf("its entry %q is a link or another thing that is neither file nor folder", e.Path)
		case e.Size < 0 || f.UncompressedSize64 != uint64(e.Size):
			return fmt.Errorf("its entry %q has %d bytes, not %d; the archive is damaged", e.Path, f.UncompressedSize64, e.Size)
		}
		seen[path] = true
	}
	if len(seen) != len(files) {
		for name := range files {
			if !seen[strings.TrimSuffix(name, "/")] {
				return fmt.Errorf("it holds %q, which its manifest does not name", name)
			}
		}
	}
	if (m.Database == "sqlite") != seen[homePrefix+databaseName] {
		return fmt.Errorf("its manifest says that the database is %q, but that is not so", m.Database)
	}
	return nil
}
