package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	keyring "github.com/zalando/go-keyring"
)

// fakeRing is a keyring in memory. err fails every call.
type fakeRing struct {
	kept map[string]string
	err  error
}

func (f *fakeRing) Get(_ context.Context, account string) (string, error) {
	if f.err != nil {
		return "", f.err
	}
	v, ok := f.kept[account]
	if !ok {
		return "", ErrUnknown
	}
	return v, nil
}

func (f *fakeRing) Set(_ context.Context, account, value string) error {
	if f.err == nil {
		f.kept[account] = value
	}
	return f.err
}

func (f *fakeRing) Delete(_ context.Context, account string) error {
	if f.err == nil {
		delete(f.kept, account)
	}
	return f.err
}

const value = "sk-test-0123456789"

func none() *fakeRing { return &fakeRing{err: fmt.Errorf("%w here", ErrNoRing)} }

func Example() {
	dir, err := os.MkdirTemp("", "secret")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s := New(Options{Dir: dir, Ring: none()})
	in, err := s.Set(context.Background(), "anthropic", "sk-ant-1", Auto)
	fmt.Println(in, err)
	got, in, err := s.Get(context.Background(), "anthropic")
	fmt.Println(got, in, err)
	// Output:
	// secrets.age <nil>
	// sk-ant-1 secrets.age <nil>
}

func TestKeyring(t *testing.T) {
	dir, ring := t.TempDir(), &fakeRing{kept: map[string]string{}}
	in, err := New(Options{Dir: dir, Ring: ring}).Set(t.Context(), "openai", value, Auto)
	if in != Keyring || err != nil {
		t.Fatalf("%v, %v", in, err)
	}
	got, in, err := New(Options{Dir: dir, Ring: ring}).Get(t.Context(), "openai")
	if got != value || in != Keyring || err != nil {
		t.Errorf("%q, %v, %v", got, in, err)
	}
	other := New(Options{Dir: t.TempDir(), Ring: ring})
	if _, _, err := other.Get(t.Context(), "openai"); !errors.Is(err, ErrUnknown) {
		t.Errorf("another home's: %v", err)
	}
	noPlainText(t, dir)
	s := New(Options{Dir: dir, Ring: ring})
	if err := s.Remove(t.Context(), "openai"); err != nil || len(ring.kept) != 0 {
		t.Errorf("%v, %v", err, ring.kept)
	}
	if err := s.Remove(t.Context(), "openai"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// A keyring that fails is not replaced by the file without being asked.
func TestKeyringThatFails(t *testing.T) {
	dir, ring := t.TempDir(), &fakeRing{err: &RingError{errors.New("it is locked")}}
	s := New(Options{Dir: dir, Ring: ring})
	var failed *RingError
	if _, err := s.Set(t.Context(), "a", value, Auto); !errors.As(err, &failed) {
		t.Error(err)
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if in, err := s.Set(t.Context(), "a", value, File); in != File || err != nil {
		t.Errorf("%v, %v", in, err)
	}
	if _, err := s.Set(t.Context(), "a", value, Keyring); !errors.As(err, &failed) {
		t.Error(err)
	}
	if got, in, err := s.Get(t.Context(), "a"); got != value || in != File || err != nil {
		t.Errorf("%q, %v, %v", got, in, err)
	}
	ring.err = ErrNoRing
	if _, err := s.Set(t.Context(), "a", value, Keyring); !errors.Is(err, ErrNoRing) {
		t.Error(err)
	}
}

// What moves is in one place only.
func TestMove(t *testing.T) {
	dir, ring := t.TempDir(), &fakeRing{kept: map[string]string{}}
	s := New(Options{Dir: dir, Ring: ring})
	for _, in := range []Place{File, Keyring, File} {
		if _, err := s.Set(t.Context(), "a", value, in); err != nil {
			t.Fatal(err)
		}
		list, err := s.List()
		if diff := cmp.Diff([]Entry{{"a", in}}, list); diff != "" || err != nil {
			t.Errorf("%s%v", diff, err)
		}
		all, err := s.openFile(t.Context())
		if len(ring.kept)+len(all) != 1 || err != nil {
			t.Errorf("%d in the keyring, %d in the file, %v", len(ring.kept), len(all), err)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if in, err := New(Options{Dir: dir, Ring: none()}).Set(t.Context(), name, value+name, Auto); in != File || err != nil {
			t.Fatalf("%v, %v", in, err)
		}
	}
	noPlainText(t, dir)
	for _, name := range []string{fileName, keyName, indexName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	for _, name := range []string{"one", "two"} {
		if got, in, err := New(Options{Dir: dir, Ring: none()}).Get(t.Context(), name); got != value+name || in != File || err != nil {
			t.Errorf("%q, %v, %v", got, in, err)
		}
	}
	for name, spoil := range map[string]func(path string) error{
		"can be read by others":             func(path string) error { return os.Chmod(path, 0o644) },
		"no age identity":                   func(path string) error { return os.WriteFile(path, []byte("AGE-SECRET-KEY-1ABC"), 0o600) },
		"there is no secrets.key beside it": os.Remove,
	} {
		key := filepath.Join(dir, keyName)
		was, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(key); err != nil {
			t.Fatal(err)
		}
		s := New(Options{Dir: dir, Ring: none()})
		if _, _, err := s.Get(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "ABC") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Set(t.Context(), "three", value, Auto); err == nil {
			t.Errorf("%s: the file was written anew without being read", name)
		}
		if err := errors.Join(os.RemoveAll(key), os.WriteFile(key, was, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// Two processes change the file in turns; neither undoes what the other did.
func TestTwoStores(t *testing.T) {
	dir := t.TempDir()
	one, two := New(Options{Dir: dir, Ring: none()}), New(Options{Dir: dir, Ring: none()})
	for i, s := range []*Store{one, two, one, two} {
		if _, err := s.Set(t.Context(), fmt.Sprintf("s%d", i), value, Auto); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Get(t.Context(), "s0"); err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		if got, _, err := New(Options{Dir: dir, Ring: none()}).Get(t.Context(), fmt.Sprintf("s%d", i)); got != value || err != nil {
			t.Errorf("s%d: %q, %v", i, got, err)
		}
	}
}

// A person is asked for the passphrase once.
func TestAskedOnce(t *testing.T) {
	dir, asked := t.TempDir(), 0
	phrase := func(_ context.Context, fresh bool) (string, error) {
		if !fresh {
			asked++
		}
		return "open sesame", nil
	}
	if _, err := New(Options{Dir: dir, Ring: none(), WorkFactor: 4, Passphrase: phrase}).Set(t.Context(), "a", value, Auto); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Dir: dir, Ring: none(), WorkFactor: 4, Passphrase: phrase})
	for range 2 {
		if _, _, err := s.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set(t.Context(), "b", value, Auto); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestPassphrase(t *testing.T) {
	dir := t.TempDir()
	with := func(phrase string) *Store {
		return New(Options{Dir: dir, Ring: none(), WorkFactor: 4, Passphrase: func(context.Context, bool) (string, error) { return phrase, nil }})
	}
	for _, name := range []string{"a", "b"} {
		if _, err := with("open sesame").Set(t.Context(), name, value, Auto); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, keyName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an identity lies beside a file with a passphrase: %v", err)
	}
	if got, _, err := with("open sesame").Get(t.Context(), "b"); got != value || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := with("close").Get(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "with this passphrase") || strings.Contains(err.Error(), "close") {
		t.Error(err)
	}
	if _, _, err := with("").Get(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "GOCLAW_PASSPHRASE") {
		t.Error(err)
	}
	if _, err := with("other").Set(t.Context(), "c", value, Auto); err == nil {
		t.Error("written with another passphrase")
	}
}

func TestRefused(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Ring: none()})
	for _, bad := range []string{"", " sk-1 ", "sk-1\n", "a\x00b", strings.Repeat("x", maxValue+1)} {
		if _, err := s.Set(t.Context(), "a", bad, Auto); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "../x", "A", "a b"} {
		if _, err := s.Set(t.Context(), bad, value, Auto); err == nil {
			t.Errorf("the name %q was taken", bad)
		}
	}
}

func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Dir: dir, Ring: none()})
	for text, want := range map[string]string{"{": "is damaged", `{"a": {"in": "cloud"}}`: `kept in "cloud"`, `{"a": {"in": "keyring"}}`: "goclaw secrets set --in file a"} {
		if err := os.WriteFile(filepath.Join(dir, indexName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The system's keyring is the library's; here its own fake stands for it.
func TestSystem(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nobody")
	keyring.MockInit()
	ring := System()
	if _, err := ring.Get(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := ring.Set(t.Context(), "x", value); err != nil {
		t.Error(err)
	}
	if got, err := ring.Get(t.Context(), "x"); got != value || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := ring.Delete(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		fails error
		none  bool
	}{
		{keyring.ErrUnsupportedPlatform, true},
		{errors.New("The name org.freedesktop.secrets was not provided by any .service files"), true},
		{errors.New("failed to unlock correct collection"), false},
	} {
		keyring.MockInitWithError(tt.fails)
		err := ring.Set(t.Context(), "x", value)
		var failed *RingError
		if errors.Is(err, ErrNoRing) != tt.none || errors.As(err, &failed) == tt.none {
			t.Errorf("%v: %v", tt.fails, err)
		}
	}
}

// A keyring that waits for a person who never comes is given up on.
func TestPatience(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nobody")
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		err := answer(t.Context(), func() error { <-open; return nil })
		var failed *RingError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "it may be locked") {
			t.Error(err)
		}
		close(open)
	})
}

// noPlainText looks for the value in every file.
func noPlainText(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Error("nothing was written")
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), value) {
			t.Errorf("%s holds the value: %s", e.Name(), data)
		}
		if e.Name() == indexName && !json.Valid(data) {
			t.Errorf("%s", data)
		}
	}
}
