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
	"syscall"
)

// home is the state folder.
type home string

func (h home) path(name string) string { return filepath.Join(string(h), name) }

// prepare creates the folder, readable by its owner only.
func (h home) prepare() error {
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return fmt.Errorf("state folder %s can't be created: %w; set GOCLAW_HOME to a folder you may write", h, errors.Unwrap(err))
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

// lock proves that no other process runs this home's runs. It holds until the
// process ends, however it ends.
func (h home) lock() (*os.File, error) {
	f, err := os.OpenFile(h.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w", h, reason(err))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("lock of %s: %w", h, err)
	}
	return f, nil
}

// token returns the gateway's token: GOCLAW_TOKEN, else the config's, else the
// file's, which is made at first use.
func (h home) token(given ...string) (string, error) {
	for _, t := range given {
		if t != "" {
			return t, nil
		}
	}
	file := h.path("token")
	b, err := os.ReadFile(file)
	if err == nil {
		if t := strings.TrimSpace(string(b)); t != "" {
			return t, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token %s: %w", file, reason(err))
	}
	raw := make([]byte, 32)
	rand.Read(raw)
	t := hex.EncodeToString(raw)
	if err := os.WriteFile(file, []byte(t+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token %s: %w", file, reason(err))
	}
	return t, nil
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
	tmp := h.path("gateway.json.new")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, h.path("gateway.json"))
}

func (h home) withdrawListener() error { return os.Remove(h.path("gateway.json")) }

// findListener reads what the lock's holder announced; ok is false if it does
// not listen.
func (h home) findListener() (l listener, ok bool) {
	b, err := os.ReadFile(h.path("gateway.json"))
	if err != nil || json.Unmarshal(b, &l) != nil || l.URL == "" {
		return listener{}, false
	}
	return l, true
}
