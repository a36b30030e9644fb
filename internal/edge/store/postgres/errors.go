package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// errClosed answers every call after Close.
var errClosed = errors.New("store is closed")

// errUnknown marks the error of a commit of which nobody knows whether it took
// effect.
var errUnknown = errors.New("the connection was lost during the commit, so that nobody knows whether it took effect: make the call again")

// PostgreSQL's codes for what is done anew without anybody noticing.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	idleInTransaction    = "25P03"
	readOnly             = "25006"
)

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// collided reports whether a transaction was undone for another one's sake.
func collided(err error) bool {
	c := code(err)
	return c == serializationFailure || c == deadlockDetected
}

// undone reports whether the server has said that it rolled back: an ERROR
// comes before the commit, while a FATAL may come after it.
func undone(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.SeverityUnlocalized == "ERROR" || e.Severity == "ERROR" || e.Code == idleInTransaction)
}

// explain turns an error of the server or of the way to it into one line: what
// happened, where, and what to do about it. Other errors pass unchanged.
func (s *Store) explain(err error) error {
	var fromServer *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnknown):
		return fmt.Errorf("%s: %w", s.where, err)
	case errors.As(err, &fromServer):
		if what := s.advice(fromServer); what != "" {
			return &failure{fmt.Sprintf("%s %s: %s", s.where, what, fromServer.Message), err}
		}
		return fmt.Errorf("%s: %w", s.where, err)
	case errors.As(err, &connect):
		return &failure{fmt.Sprintf("%s can't be reached: %s; check that it runs and that the URL is right", s.where, reason(connect)), err}
	case errors.Is(err, errSlow):
		return fmt.Errorf("%s: %w", s.where, errSlow)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isNetwork(err):
		return &failure{fmt.Sprintf("%s: the connection was lost: %s; check that the server runs", s.where, oneLine(err.Error())), err}
	}
	return err
}

// failure is an error with a text of its own.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// advice says what the server complains of, or nothing if that is not for the
// person who runs it.
func (s *Store) advice(e *pgconn.PgError) string {
	switch e.Code {
	case "28000", "28P01":
		return fmt.Sprintf("refuses user %q; check user and password in the URL", s.user)
	case "3D000":
		return "has no such database; create it (createdb), or correct the URL"
	case "42501":
		return fmt.Sprintf("does not allow user %q what a store needs; make that user the owner of the database", s.user)
	case "42P01", "42703":
		return "lacks a table or column of GoClaw; check that the URL names the right database and search_path"
	case "53300":
		return "has no connection left; raise its max_connections, or lower pool_max_conns in the URL"
	case "53100":
		return "has no disk space left; nothing was written: free some and try again"
	case "53200":
		return "has no memory left; nothing was written"
	case "57014", "55P03":
		return "gave up a statement that took too long; nothing was written: look in pg_stat_activity for transactions that hold locks"
	case "57P01", "57P02", "57P05":
		return "has closed the connection; it may be stopping"
	case "57P03":
		return "is starting or stopping; try again"
	case readOnly:
		return "takes no writes (a standby?); name all hosts in the URL, with target_session_attrs=read-write"
	}
	return ""
}

// isNetwork reports whether err came of the way to the server.
func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// reason is what a failure comes of, without the addresses that are said
// already; of many hosts each one's.
func reason(err error) string {
	for {
		if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // looks inside on purpose
			var all []string
			for _, one := range many.Unwrap() {
				if text := reason(one); !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
			return strings.Join(all, ", ")
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return oneLine(err.Error())
		}
		err = inner
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func isUnknown(err error) bool { return errors.Is(err, errUnknown) }
