package definitions

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The bounds of a scan. What lies beyond is reported, not read.
const (
	MaxFile  = 1 << 20 // bytes
	maxFiles = 2000    // in one folder, subfolders included
	maxDepth = 6       // folders below a scope's own
)

// racyWindow is the age below which a file's time stamp can't tell two writes
// apart on any file system in use.
const racyWindow = 20 * time.Millisecond

// The scopes.
const (
	ScopeBuiltin   = "builtin"
	ScopeHome      = "home"
	ScopeOpenCode  = "opencode"
	ScopeClaude    = "claude"
	ScopeWorkspace = "workspace"
)

//go:embed builtin/*.md
var builtin embed.FS

// File is a definition file as it was found.
type File struct {
	Path    string // absolute; builtin/NAME.md for a built-in one
	Scope   string
	Rank    int  // how near the scope is: of two names the higher one holds
	Trusted bool // false: it came with a workspace that no person trusts yet
	Data    []byte
	Serial  uint64 // another one after each time that the file was read

	// Problem and Hint say why Data is missing; "" if it isn't.
	Problem string
	Hint    string
}

// Options say where a Scanner looks.
type Options struct {
	Home   string // the folder of the home's definitions, absolute
	Compat bool   // read .claude/agents and .opencode/agent of workspaces too

	// Trusted reports whether a person trusts a workspace; nil trusts none.
	Trusted func(workspace string) bool
}

// Scanner lists definition files. It is safe for concurrent use.
type Scanner struct {
	opts Options

	mu     sync.Mutex
	serial uint64
	cache  map[string]map[string]entry // by folder, by path
	seen   map[string][]string         // the files and folders that the last List found, by folder
}

// entry is a file as it was read. It holds while time, size and inode do.
type entry struct {
	info fs.FileInfo
	file File
}

// New returns a Scanner that has read nothing yet.
func New(opts Options) *Scanner {
	return &Scanner{opts: opts, cache: map[string]map[string]entry{}, seen: map[string][]string{}}
}

// folder is one place of a scope.
type folder struct {
	root  string // no link may lead out of it
	dir   string // below it, with slashes
	scope string
	rank  int
}

// List returns the files of all scopes, farthest scope first and by path
// within one. workspace is absolute, or "" for none. A folder that is missing
// has no files.
func (s *Scanner) List(workspace string) []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := builtins()
	trusted := workspace != "" && s.opts.Trusted != nil && s.opts.Trusted(workspace)
	for _, f := range s.folders(workspace) {
		found := s.scan(f)
		for i := range found {
			found[i].Trusted = f.scope == ScopeHome || trusted
		}
		files = append(files, found...)
	}
	return files
}

// Stamp changes when a folder of the scopes does, or a file or folder in them
// that a List has found. It opens nothing: cheap enough to be asked twice a second.
func (s *Scanner) Stamp(workspace string) (sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(place string) {
		if info, err := os.Stat(place); err == nil {
			sum += info.ModTime().UnixNano() + info.Size()*1_000_003
		}
	}
	for _, f := range s.folders(workspace) {
		at := filepath.Join(f.root, filepath.FromSlash(f.dir))
		add(at)
		for _, place := range s.seen[at] {
			add(place)
		}
	}
	return sum
}

func (s *Scanner) folders(workspace string) []folder {
	var list []folder
	if s.opts.Home != "" {
		list = append(list, folder{s.opts.Home, ".", ScopeHome, 1})
	}
	if workspace == "" {
		return list
	}
	if s.opts.Compat {
		list = append(list,
			folder{workspace, ".opencode/agent", ScopeOpenCode, 2}, folder{workspace, ".opencode/agents", ScopeOpenCode, 2},
			folder{workspace, ".claude/agents", ScopeClaude, 3})
	}
	return append(list, folder{workspace, ".goclaw/agents", ScopeWorkspace, 4})
}

func builtins() []File {
	var files []File
	for _, name := range BuiltinNames() {
		data, _ := Builtin(name)
		files = append(files, File{Path: "builtin/" + name + ".md", Scope: ScopeBuiltin, Trusted: true, Data: data, Serial: 1})
	}
	return files
}

// BuiltinNames are the names of the definitions in the binary, sorted.
func BuiltinNames() []string {
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".md")
	}
	return names
}

// Builtin returns the file of a definition in the binary.
func Builtin(name string) ([]byte, bool) {
	data, err := builtin.ReadFile("builtin/" + name + ".md")
	return data, err == nil
}

// scan reads one folder. The caller holds the lock.
func (s *Scanner) scan(f folder) []File {
	at := filepath.Join(f.root, filepath.FromSlash(f.dir))
	old, fresh := s.cache[at], map[string]entry{}
	s.cache[at] = fresh
	refuse := func(problem, hint string) []File {
		return []File{{Path: at, Scope: f.scope, Rank: f.rank, Problem: problem, Hint: hint}}
	}
	root, err := os.OpenRoot(f.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refuse("the folder can't be opened: "+reason(err), "make it a folder that you may read")
	}
	defer root.Close()
	if info, err := root.Stat(f.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil || !info.IsDir() {
		return refuse("it is no folder inside the workspace", "make it a folder, not a file or a link that leads out")
	}
	var files []File
	var places []string
	walk := fs.WalkDir(root.FS(), f.dir, func(name string, d fs.DirEntry, err error) error {
		place := filepath.Join(f.root, filepath.FromSlash(name))
		file := File{Path: place, Scope: f.scope, Rank: f.rank}
		switch {
		case err != nil:
			file.Problem, file.Hint = "it can't be read: "+reason(err), "check its permissions"
		case name == f.dir:
			return nil
		case d.IsDir():
			if strings.HasPrefix(d.Name(), ".") || strings.Count(strings.TrimPrefix(name, f.dir), "/") > maxDepth {
				return fs.SkipDir
			}
			places = append(places, place)
			return nil
		case !isDefinition(d.Name()):
			return nil
		case len(files) >= maxFiles:
			files = append(files, refuse(fmt.Sprintf("it holds more than %d files; the others were not read", maxFiles), "keep fewer there")...)
			return fs.SkipAll
		default:
			e, known := old[place]
			if e = s.look(root, name, e, known, file); e.info != nil {
				fresh[place] = e
			}
			file = e.file
		}
		files = append(files, file)
		return nil
	})
	if walk != nil {
		files = append(files, refuse("the folder can't be read: "+reason(walk), "check its permissions")...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, file := range files {
		places = append(places, file.Path)
	}
	s.seen[at] = places
	return files
}

// isDefinition leaves out hidden files, editors' leavings and READMEs.
func isDefinition(name string) bool {
	lower := strings.ToLower(name)
	return path.Ext(lower) == ".md" && !strings.HasPrefix(name, ".") && lower != "readme.md"
}

// look returns a file from the cache, or reads it. An entry without info is
// not to be kept.
func (s *Scanner) look(root *os.Root, name string, old entry, known bool, file File) entry {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		file.Problem, file.Hint = "it can't be read: "+reason(err), "a link must stay inside the folder; else check its permissions"
		return entry{file: file}
	case !info.Mode().IsRegular():
		file.Problem, file.Hint = "it is not a regular file", "remove it, or write a file"
		return entry{file: file}
	case known && os.SameFile(info, old.info) && info.Size() == old.info.Size() && info.ModTime().Equal(old.info.ModTime()):
		return old
	}
	s.serial++
	file.Serial = s.serial + 1
	info, file.Data, err = read(root, name)
	if err != nil {
		file.Data, file.Problem, file.Hint = nil, reason(err), fmt.Sprintf("write a regular file of at most %d bytes", MaxFile)
		return entry{file: file}
	}
	if time.Since(info.ModTime()) < racyWindow {
		return entry{file: file}
	}
	return entry{info: info, file: file}
}

// read opens without waiting, so that a pipe which took the file's place can't
// hold it up.
func read(root *os.Root, name string) (fs.FileInfo, []byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("it has %d bytes", info.Size())
	}
	return info, data, nil
}

func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Find returns the definition files at a path that a person names: the file
// itself, or all in a folder and its subfolders. Their paths begin with the
// given one. A path that is not there is an error that wraps fs.ErrNotExist.
func Find(name string) ([]File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	s := New(Options{})
	if info.IsDir() {
		return s.scan(folder{root: name, dir: "."}), nil
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	root, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer root.Close()
	return []File{s.look(root, filepath.Base(real), entry{}, false, File{Path: name}).file}, nil
}
