// Command goclaw is the gateway, the terminal chat and the tools around them.
// This package holds flags, wiring and exit codes; it is the only place where
// the concrete types meet.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
	_ "time/tzdata" // zones work where the system has none

	"goclaw/internal/edge/redact"
	"goclaw/internal/edge/secret"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// The exit codes that scripts may rely on (spec section 12).
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotCompleted = 3
)

func main() {
	sandbox.MaybeChild()
	os.Exit(run(world{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	}))
}

// world is what the process gets from outside, so that tests can give it.
type world struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Hook   func(point string) // crash tests' failpoints; nil in the product
	Lease  time.Duration      // crash tests' leases; 0 in the product
	Ring   secret.Ring        // tests' keyring; nil, the system's, in the product
}

func run(w world) int {
	ctx, release := untilSignal(context.Background())
	defer release()
	c := &cli{world: w, hide: &redact.Redactor{}}
	err := c.execute(ctx)
	if err == nil {
		return exitOK
	}
	var coded exitError
	if !errors.As(err, &coded) {
		if cause := context.Cause(ctx); cause != nil && (errors.Is(err, cause) || errors.Is(err, context.Canceled)) {
			err = cause
		}
		coded = exitError{exitFailed, err}
		if !c.began {
			coded.code = exitUsage
		}
	}
	if coded.error != nil {
		fmt.Fprintf(w.Stderr, "goclaw: %s\n", strings.ReplaceAll(c.hide.Text(coded.Error()), "\n", "\ngoclaw: "))
	}
	return coded.code
}

// stopped is the cause of the context's end after a signal.
type stopped struct{ os.Signal }

// Error says what happened in the words of a person at a terminal.
func (s stopped) Error() string {
	if s.Signal == os.Interrupt {
		return "interrupted"
	}
	return s.String()
}

// untilSignal ends the context at the first signal to stop. The second one
// ends the process at once, which loses nothing that is recorded.
func untilSignal(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(stopped{s})
		case <-released:
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		waiting.Wait()
		cancel(nil)
	}
}

// exitError is an error with its exit code. A nil error was already reported.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// usage marks an error of the command line or the configuration.
func usage(err error) error { return exitError{exitUsage, err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }
