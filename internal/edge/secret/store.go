package secret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goclaw"
)

// Place is where a secret is kept.
type Place string

// The places. Auto is the keyring, or the file on a machine without one.
const (
	Auto    Place = ""
	Keyring Place = "keyring"
	File    Place = "file"
)

// String says it to a person.
func (p Place) String() string {
	switch p {
	case Keyring:
		return "the system's keyring"
	case File:
		return fileName
	}
	return "nowhere"
}

// Entry is one secret on record, without its value.
type Entry struct {
	Name  string
	Place Place
}

var (
	// ErrUnknown says that there is no secret of that name.
	ErrUnknown = errors.New("there is no such secret")
	// ErrNoRing says that this machine has no keyring at all.
	ErrNoRing = errors.New("there is no keyring")
)

// RingError is the failure of a keyring that is there: it is locked, or does
// not answer.
type RingError struct{ Err error }

func (e *RingError) Error() string { return "the system's keyring failed: " + e.Err.Error() }

// Unwrap returns what the keyring said.
func (e *RingError) Unwrap() error { return e.Err }

// Ring is a keyring. Its methods return ErrUnknown for what it does not hold
// and ErrNoRing where it does not exist.
type Ring interface {
	Get(ctx context.Context, account string) (string, error)
	Set(ctx context.Context, account, value string) error
	Delete(ctx context.Context, account string) error
}

// Options are a store's surroundings. Only Dir is required.
type Options struct {
	Dir  string // the state folder
	Ring Ring   // nil: the system's

	// Passphrase is the one of the age file, "" if none was given. fresh: the
	// file is made now. nil is a passphrase that nobody gives.
	Passphrase func(ctx context.Context, fresh bool) (string, error)

	// Lock keeps other processes from changing the store meanwhile. nil: there
	// are none.
	Lock func(ctx context.Context) (release func() error, err error)

	WorkFactor int // of passphrases, as scrypt's log N; 0: age's own
}

// Store keeps secrets. It is for one goroutine at a time.
type Store struct {
	options Options
	ring    Ring
	phrase  string            // that opened the file
	opened  map[string]string // the file's content, once it was read
}

// New returns the store of a state folder. Nothing is read or made yet.
func New(o Options) *Store {
	ring := o.Ring
	if ring == nil {
		ring = System()
	}
	return &Store{options: o, ring: ring}
}

const (
	fileName  = "secrets.age"
	keyName   = "secrets.key"
	indexName = "secrets.json"
	// maxValue is what every keyring takes.
	maxValue = 2000
)

// CheckName says why name can't be a secret's.
func CheckName(name string) error {
	if err := goclaw.CheckAgentID(name); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	return nil
}

// CheckValue says why value can't be kept, without quoting it.
func CheckValue(value string) error {
	switch {
	case value == "":
		return errors.New("the secret is empty")
	case len(value) > maxValue:
		return fmt.Errorf("the secret is longer than %d bytes, which not every keyring takes", maxValue)
	case strings.TrimSpace(value) != value, strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return errors.New("the secret holds spaces at its ends, line breaks or control characters; give the key alone")
	}
	return nil
}

// List returns the secrets on record by name. It unlocks nothing.
func (s *Store) List() ([]Entry, error) {
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(index))
	for _, name := range slices.Sorted(maps.Keys(index)) {
		list = append(list, Entry{name, index[name].In})
	}
	return list, nil
}

// Get returns a secret and where it is kept.
func (s *Store) Get(ctx context.Context, name string) (value string, in Place, err error) {
	index, err := s.index()
	if err != nil {
		return "", "", err
	}
	entry, ok := index[name]
	if !ok {
		return "", "", fmt.Errorf("%w as %q: goclaw secrets set %s keeps it", ErrUnknown, name, name)
	}
	switch entry.In {
	case Keyring:
		value, err = s.ring.Get(ctx, s.account(name))
	case File:
		value, err = s.fromFile(ctx, name)
	default:
		return "", "", fmt.Errorf("%s says that the secret %q is kept in %q, which this version does not know", s.path(indexName), name, string(entry.In))
	}
	switch {
	case errors.Is(err, ErrUnknown):
		return "", "", fmt.Errorf("the secret %q is no longer in %s; goclaw secrets set %s keeps it anew", name, entry.In, name)
	case errors.Is(err, ErrNoRing):
		return "", "", fmt.Errorf("the secret %q is kept in the system's keyring, but %w; goclaw secrets set --in file %s keeps it in %s", name, err, name, fileName)
	case err != nil:
		return "", "", fmt.Errorf("secret %q: %w", name, err)
	}
	return value, entry.In, nil
}

// Set keeps a secret and returns where. With Auto a keyring that fails is a
// *RingError: whether the file will do is the person's decision.
func (s *Store) Set(ctx context.Context, name, value string, in Place) (kept Place, err error) {
	if err := cmp.Or(CheckName(name), CheckValue(value)); err != nil {
		return "", err
	}
	release, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	index, err := s.index()
	if err != nil {
		return "", err
	}
	before := index[name].In
	if kept, err = s.put(ctx, name, value, in); err != nil {
		return "", err
	}
	index[name] = record{kept}
	if err := s.saveIndex(index); err != nil {
		return "", err
	}
	if before != "" && before != kept {
		if err := s.drop(ctx, name, before); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNoRing) {
			return kept, fmt.Errorf("the secret %q is kept in %s now, but the old one in %s could not be removed: %w", name, kept, before, err)
		}
	}
	return kept, nil
}

func (s *Store) put(ctx context.Context, name, value string, in Place) (Place, error) {
	if in != File {
		err := s.ring.Set(ctx, s.account(name), value)
		if err == nil {
			err = s.readBack(ctx, name, value)
		}
		if err == nil || in == Keyring || !errors.Is(err, ErrNoRing) {
			return Keyring, err
		}
	}
	return File, s.changeFile(ctx, func(all map[string]string) { all[name] = value })
}

// readBack makes sure that the keyring keeps what it takes.
func (s *Store) readBack(ctx context.Context, name, value string) error {
	got, err := s.ring.Get(ctx, s.account(name))
	if err == nil && got != value {
		err = &RingError{errors.New("it gives back something else than it was given")}
	}
	return err
}

// Remove forgets a secret.
func (s *Store) Remove(ctx context.Context, name string) (err error) {
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	index, err := s.index()
	if err != nil {
		return err
	}
	entry, ok := index[name]
	if !ok {
		return fmt.Errorf("%w as %q; goclaw secrets list shows those there are", ErrUnknown, name)
	}
	if err := s.drop(ctx, name, entry.In); err != nil && !errors.Is(err, ErrUnknown) {
		return fmt.Errorf("secret %q: %w", name, err)
	}
	delete(index, name)
	return s.saveIndex(index)
}

func (s *Store) drop(ctx context.Context, name string, in Place) error {
	if in == Keyring {
		return s.ring.Delete(ctx, s.account(name))
	}
	return s.changeFile(ctx, func(all map[string]string) { delete(all, name) })
}

// account is a secret's name in the keyring, where other homes' are too.
func (s *Store) account(name string) string { return name + " of " + s.options.Dir }

func (s *Store) path(name string) string { return filepath.Join(s.options.Dir, name) }

func (s *Store) lock(ctx context.Context) (func() error, error) {
	if s.options.Lock == nil {
		return func() error { return nil }, nil
	}
	return s.options.Lock(ctx)
}

// record is what secrets.json says of a secret.
type record struct {
	In Place `json:"in"`
}

func (s *Store) index() (map[string]record, error) {
	data, err := os.ReadFile(s.path(indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]record{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	index := map[string]record{}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); it only says which secret is kept where: remove it and set the secrets again", s.path(indexName), err)
	}
	return index, nil
}

func (s *Store) saveIndex(index map[string]record) error {
	data, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return s.write(indexName, append(data, '\n'))
}

// write puts a file of the state folder in its place in one step.
func (s *Store) write(name string, content []byte) (err error) {
	tmp, err := os.CreateTemp(s.options.Dir, "."+name+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), s.path(name))
	}
	if err != nil {
		return fmt.Errorf("secrets: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
