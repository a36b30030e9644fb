package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"goclaw/internal/edge/secret"
)

// keyringFile names, in the test's program, the file that stands for the
// system's keyring: no test touches a real one. A file that holds "locked" is
// one that fails; without the variable there is none.
const keyringFile = "GOCLAW_TEST_KEYRING"

type fileRing string

func ringIn(path string) secret.Ring { return fileRing(path) }

func (r fileRing) load() (map[string]string, error) {
	if r == "" {
		return nil, secret.ErrNoRing
	}
	data, err := os.ReadFile(filepath.Clean(string(r)))
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil
	}
	kept := map[string]string{}
	if err != nil || json.Unmarshal(data, &kept) != nil {
		return nil, &secret.RingError{Err: errors.New("it is locked")}
	}
	return kept, nil
}

func (r fileRing) save(kept map[string]string) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return os.WriteFile(string(r), data, 0o600)
}

func (r fileRing) Get(_ context.Context, account string) (string, error) {
	kept, err := r.load()
	if err != nil {
		return "", err
	}
	value, ok := kept[account]
	if !ok {
		return "", secret.ErrUnknown
	}
	return value, nil
}

func (r fileRing) Set(_ context.Context, account, value string) error {
	kept, err := r.load()
	if err != nil {
		return err
	}
	kept[account] = value
	return r.save(kept)
}

func (r fileRing) Delete(_ context.Context, account string) error {
	kept, err := r.load()
	if err != nil {
		return err
	}
	delete(kept, account)
	return r.save(kept)
}
