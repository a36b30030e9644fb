package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// home is the state folder.
type home string

func (h home) path(name string) string { return filepath.Join(string(h), name) }

// prepare creates the folder, readable by its owner only.
func (h home) prepare() error {
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return fmt.Errorf("state folder %s can't be created: %w; set GOCLAW_HOME to a folder you may write", h, reason(err))
	}
	probe, err := os.CreateTemp(string(h), ".write-*")
	if err != nil {
		return fmt.Errorf("state folder %s can't be written: %w; set GOCLAW_HOME to a folder you may write", h, reason(err))
	}
	name := probe.Name()
	if err := errors.Join(probe.Close(), os.Remove(name)); err != nil {
		return fmt.Errorf("state folder %s: %w", h, err)
	}
	return nil
}

func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// errHeld says that a live process owns the home.
var errHeld = errors.New("held by another goclaw process")

// homeLock proves that no other process runs this home's runs. It holds until
// the process ends, however it ends. A nil one proves nothing.
type homeLock struct{ file *os.File }

// Close gives the lock back.
func (l *homeLock) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// lock takes the home's lock, or returns errHeld.
func (h home) lock() (*homeLock, error) {
	f, err := os.OpenFile(h.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", h.path("lock"), reason(err))
	}
	if err := tryLock(f); err != nil {
		f.Close()
		if errors.Is(err, errHeld) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("lock %s: %w", h.path("lock"), err)
	}
	return &homeLock{f}, nil
}

// readToken returns the gateway's token, "" if its file is missing or empty.
func (h home) readToken() (string, error) {
	b, err := os.ReadFile(h.path("token"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("token %s can't be read: %w; make it a file that you may read, or set GOCLAW_TOKEN", h.path("token"), reason(err))
	}
	t := strings.TrimSpace(string(b))
	if err := checkToken(t); err != nil {
		return "", fmt.Errorf("token %s %w", h.path("token"), err)
	}
	return t, nil
}

// open says that others than the owner can read the token, "" if they can't.
func (h home) open() string {
	info, err := os.Stat(h.path("token"))
	if err != nil || os.PathSeparator != '/' || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("others can read %s (mode %04o): chmod 600 it, then goclaw token rotate", h.path("token"), info.Mode().Perm())
}

// makeToken returns the file's token, which it makes at first use. Only the
// holder of the lock may call it: a running gateway keeps its token.
func (h home) makeToken() (string, error) {
	if t, err := h.readToken(); err != nil || t != "" {
		return t, err
	}
	t := newToken()
	return t, h.writeToken(t)
}

func (h home) writeToken(t string) error {
	if err := h.replace("token", []byte(t+"\n")); err != nil {
		return fmt.Errorf("token %s: %w", h.path("token"), reason(err))
	}
	return nil
}

func newToken() string {
	raw := make([]byte, 32)
	rand.Read(raw)
	return hex.EncodeToString(raw)
}

// checkToken refuses what can't stand in an HTTP header.
func checkToken(t string) error {
	if strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("holds spaces or characters that are no ASCII; use letters and digits")
	}
	return nil
}

// replace writes a file of the home in one step, for its owner only.
func (h home) replace(name string, content []byte) error {
	tmp := h.path(name + ".new")
	// One that a crash left may be open to others, or a link.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, h.path(name))
}

// listener tells other commands where the gateway that holds the lock listens.
type listener struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

func (h home) announceListener(l listener) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := h.replace("gateway.json", b); err != nil {
		return fmt.Errorf("state folder %s: %w", h, reason(err))
	}
	return nil
}

// withdrawListener is no error when nothing was announced.
func (h home) withdrawListener() error {
	if err := os.Remove(h.path("gateway.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state folder %s: %w", h, err)
	}
	return nil
}

// findListener reads what the lock's holder announced; ok is false if it does
// not listen.
func (h home) findListener() (l listener, ok bool) {
	b, err := os.ReadFile(h.path("gateway.json"))
	if err != nil || json.Unmarshal(b, &l) != nil || l.URL == "" {
		return listener{}, false
	}
	return l, true
}
