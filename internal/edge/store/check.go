package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"goclaw"
)

// CheckAcceptance refuses what can't become a run.
func CheckAcceptance(a goclaw.Acceptance) error {
	if a.Run.ID == "" {
		return errors.New("the run has no id")
	}
	if a.Run.State != goclaw.StateQueued {
		return fmt.Errorf("run %s is %s: only a queued run can be accepted", a.Run.ID, a.Run.State)
	}
	if err := CheckKey(a.Run.Session); err != nil {
		return fmt.Errorf("run %s: %w", a.Run.ID, err)
	}
	if !a.Run.Requester.IsZero() {
		if err := CheckKey(a.Run.Requester); err != nil {
			return fmt.Errorf("run %s: requester: %w", a.Run.ID, err)
		}
	}
	return nil
}

// CheckEnding refuses an ending that ends nothing, or that tells of another
// run than the one that f is a claim on.
func CheckEnding(f goclaw.Fence, e goclaw.Ending) error {
	if !e.State.Ended() {
		return fmt.Errorf("%s is not the state of a run that has ended", e.State)
	}
	if a := e.Announce; a != nil {
		if a.ID == "" || a.Source != f.Run {
			return fmt.Errorf("announcement %q has source %q; it needs an id, and its source is the run that ends", a.ID, a.Source)
		}
		if err := CheckKey(a.Session); err != nil {
			return fmt.Errorf("announcement: %w", err)
		}
	}
	if o := e.Outbox; o != nil {
		if o.ID == "" || o.Run != f.Run {
			return fmt.Errorf("outbound %q is of run %q; it needs an id, and its run is the one that ends", o.ID, o.Run)
		}
		if err := CheckKey(o.Session); err != nil {
			return fmt.Errorf("outbound: %w", err)
		}
	}
	return nil
}

// CheckKey refuses a key that could not be read back.
func CheckKey(key goclaw.SessionKey) error {
	parsed, err := goclaw.ParseSessionKey(key.String())
	if err != nil {
		return err
	}
	if parsed != key {
		return fmt.Errorf("session key %#v has no canonical form", key)
	}
	return nil
}

// ContentSHA is the name under which content is stored: its SHA-256 in
// lower-case hex.
func ContentSHA(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
