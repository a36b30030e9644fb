package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"goclaw"
)

func (c *cli) runCommand() *cobra.Command {
	var agent, session string
	var wait bool
	cmd := &cobra.Command{
		Use:   "run [flags] MESSAGE",
		Short: "Send one message, print the answer",
		Long: "Sends one message to a session and prints the answer. MESSAGE - reads standard input.\n" +
			"With --wait it stays until every worker that was started is announced and answered.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run needs a MESSAGE (or - for standard input)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := sessionFlag(agent, session)
			if err != nil {
				return err
			}
			text := strings.Join(args, " ")
			if text == "-" {
				b, err := io.ReadAll(c.Stdin)
				if err != nil {
					return fmt.Errorf("standard input: %w", err)
				}
				text = string(b)
			}
			if strings.TrimSpace(text) == "" {
				return usage(errors.New("the message is empty"))
			}
			return c.runMessage(cmd.Context(), key, text, wait)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "main", "the agent `ID` to talk to")
	cmd.Flags().StringVar(&session, "session", "", "the session `KEY` (default the agent's main session)")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay until every worker is announced and answered")
	return cmd
}

// sessionFlag is the session that --agent and --session name.
func sessionFlag(agent, session string) (goclaw.SessionKey, error) {
	if session != "" {
		key, err := goclaw.ParseSessionKey(session)
		if err != nil {
			return key, usage(fmt.Errorf("--session: %w", err))
		}
		return key, nil
	}
	if err := goclaw.CheckAgentID(agent); err != nil {
		return goclaw.SessionKey{}, usage(fmt.Errorf("--agent: %w", err))
	}
	return goclaw.MainKey(agent), nil
}

func (c *cli) runMessage(ctx context.Context, key goclaw.SessionKey, text string, wait bool) (err error) {
	l, err := c.connect(ctx, toRun, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, l.close())
		}
	}()
	c.tellNotes(l)
	receipt, err := l.Receive(ctx, goclaw.Inbound{Session: key, Text: text, Key: uuid.NewString(), Model: c.model})
	if err != nil {
		return c.badRequest(err)
	}
	if receipt.Run == nil {
		return c.print(goclaw.Outcome{Session: key, Reply: receipt.Reply, Replies: []string{receipt.Reply}, Runs: []goclaw.RunInfo{}, Status: goclaw.StateCompleted},
			func() string { return receipt.Reply })
	}
	out, err := c.await(ctx, l, receipt.Run.ID, wait)
	if err != nil {
		return err
	}
	closed = true
	if err := l.close(); err != nil {
		return err
	}
	if out.Unfinished > 0 && l.app != nil {
		fmt.Fprintf(c.Stderr, "goclaw: %s paused and will be resumed by the next start of goclaw (--wait waits for them)\n",
			plural(out.Unfinished, "worker is", "workers are"))
	}
	if c.json {
		if err := c.print(out, nil); err != nil {
			return err
		}
	}
	if out.Status != goclaw.StateCompleted {
		return exitError{exitNotCompleted, fmt.Errorf("the turn ended %s: %s", out.Status, out.Error)}
	}
	return nil
}

// await prints replies as they come. An interrupt cancels what the message
// started.
func (c *cli) await(ctx context.Context, l link, run string, wait bool) (goclaw.Outcome, error) {
	out, err := l.Await(ctx, run, false)
	printed := c.printReplies(out, 0)
	if err == nil && wait {
		out, err = l.Await(ctx, run, true)
		c.printReplies(out, printed)
	}
	if err == nil || ctx.Err() == nil {
		return out, err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if _, cerr := l.Cancel(after, run, "interrupted by the user"); cerr != nil {
		return out, fmt.Errorf("interrupted; the run could not be cancelled: %w", cerr)
	}
	if _, cerr := l.Await(after, run, false); cerr != nil {
		return out, fmt.Errorf("interrupted; the run is being cancelled: %w", cerr)
	}
	return out, exitError{exitNotCompleted, errors.New("interrupted; the run and its workers were cancelled")}
}

func (c *cli) printReplies(out goclaw.Outcome, from int) int {
	if c.json {
		return 0
	}
	for _, reply := range out.Replies[min(from, len(out.Replies)):] {
		fmt.Fprintln(c.Stdout, reply)
	}
	return len(out.Replies)
}

// tellNotes says what the person should know before anything runs.
func (c *cli) tellNotes(l link) {
	if l.app == nil {
		return
	}
	for _, n := range l.app.settings.notes {
		fmt.Fprintln(c.Stderr, "goclaw: "+n)
	}
}

// badRequest gives an error that the caller can mend the exit code of bad usage.
func (c *cli) badRequest(err error) error {
	if goclaw.IsBadRequest(err) {
		return usage(err)
	}
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
