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
	"syscall"

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
}

func run(w world) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &cli{world: w}
	err := c.execute(ctx)
	if err == nil {
		return exitOK
	}
	var coded exitError
	if !errors.As(err, &coded) {
		coded = exitError{exitFailed, err}
		if !c.began {
			coded.code = exitUsage
		}
	}
	if coded.error != nil {
		fmt.Fprintf(w.Stderr, "goclaw: %v\n", coded.error)
	}
	return coded.code
}

// exitError is an error with its exit code. A nil error was already reported.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// usage marks an error of the command line or the configuration.
func usage(err error) error { return exitError{exitUsage, err} }
