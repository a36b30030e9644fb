package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	keyring "github.com/zalando/go-keyring"
)

const (
	service = "goclaw"
	// ringPatience is long enough for a person to unlock the keyring.
	ringPatience = 30 * time.Second
)

// System returns the keyring of the person's session: Secret Service on Linux,
// Keychain on macOS, Credential Manager on Windows.
func System() Ring { return system{} }

type system struct{}

func (system) Get(ctx context.Context, account string) (value string, err error) {
	got := make(chan string, 1)
	err = answer(ctx, func() error {
		value, err := keyring.Get(service, account)
		got <- value
		return err
	})
	if err != nil {
		return "", err
	}
	return <-got, nil
}

func (system) Set(ctx context.Context, account, value string) error {
	return answer(ctx, func() error { return keyring.Set(service, account, value) })
}

func (system) Delete(ctx context.Context, account string) error {
	return answer(ctx, func() error { return keyring.Delete(service, account) })
}

// answer waits for a call of the keyring, which knows no context: it may be
// waiting for the person to unlock it.
func answer(ctx context.Context, call func() error) error {
	if !session() {
		return fmt.Errorf("%w on this machine (no D-Bus session)", ErrNoRing)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ringPatience, fmt.Errorf("no answer within %s: it may be locked", ringPatience))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return verdict(err)
	case <-ctx.Done():
		return &RingError{context.Cause(ctx)}
	}
}

func verdict(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrUnknown
	case errors.Is(err, keyring.ErrUnsupportedPlatform), strings.Contains(err.Error(), "org.freedesktop.secrets was not provided"):
		return fmt.Errorf("%w on this machine", ErrNoRing)
	}
	return &RingError{err}
}

// session reports whether there is a session to ask. Without one the D-Bus
// library would start a bus of its own and leave it behind.
func session() bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
