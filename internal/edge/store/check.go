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
	if !a.Run.Lane.IsZero() {
		if err := CheckKey(a.Run.Lane); err != nil {
			return fmt.Errorf("run %s: lane: %w", a.Run.ID, err)
		}
	}
	if err := checkBlobs(a.Blobs); err != nil {
		return fmt.Errorf("run %s: %w", a.Run.ID, err)
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
	if e.Wake != nil && e.Wake.Last == 0 {
		return errors.New("the ending would leave its parent waiting for ever: its wake has no time for the last worker")
	}
	return nil
}

// CheckBatch refuses content under a wrong hash, and artifacts without a name.
func CheckBatch(b goclaw.Batch) error {
	for _, a := range b.Artifacts {
		if a.Name == "" {
			return errors.New("an artifact has no name")
		}
	}
	return checkBlobs(b.Blobs)
}

func checkBlobs(blobs []goclaw.Blob) error {
	for _, b := range blobs {
		if sum := ContentSHA(b.Data); sum != b.SHA256 {
			return fmt.Errorf("blob is named %q but its SHA-256 is %s", b.SHA256, sum)
		}
	}
	return nil
}

// CheckMark refuses a state that no reply is marked with.
func CheckMark(state string) error {
	switch state {
	case "pending", "sent", "parked":
		return nil
	}
	return fmt.Errorf("state %q: want pending, sent or parked", state)
}

// CheckSuspension refuses a suspension that waits for nothing known.
func CheckSuspension(s goclaw.Suspension) error {
	switch s.For {
	case goclaw.WaitWorkers, goclaw.WaitPerson, goclaw.WaitCaller:
		return nil
	}
	return fmt.Errorf("a run can't wait for %q", s.For)
}

// Posted returns the item as it is stored for the run of session, or why it
// can't be.
func Posted(item goclaw.InboxItem, session goclaw.SessionKey) (goclaw.InboxItem, error) {
	switch {
	case item.ID == "" || item.CreatedAt == 0:
		return item, fmt.Errorf("message %q of %d: it needs an id and a time", item.ID, item.CreatedAt)
	case item.Session.IsZero():
		item.Session = session
	case item.Session != session:
		return item, fmt.Errorf("message %s is for session %s, but the run has %s", item.ID, item.Session, session)
	}
	if item.Kind == "" {
		item.Kind = goclaw.ItemSteer
	}
	return fresh(item), nil
}

// Announced returns the announcement as it is stored by the ending e.
func Announced(e goclaw.Ending) goclaw.InboxItem {
	item := *e.Announce
	if item.Kind == "" {
		item.Kind = goclaw.ItemAnnouncement
	}
	if item.CreatedAt == 0 {
		item.CreatedAt = e.Now
	}
	return fresh(item)
}

// fresh is an item that nobody has tried to deliver yet.
func fresh(i goclaw.InboxItem) goclaw.InboxItem {
	return goclaw.InboxItem{
		ID: i.ID, Kind: i.Kind, Session: i.Session, Source: i.Source, Group: i.Group,
		Mode: i.Mode, Text: i.Text, CreatedAt: i.CreatedAt,
	}
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
