package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/edge/client"
)

// maxMessage bounds a message, in bytes: the API takes no more.
const maxMessage = 3 << 20

func (c *cli) runCommand() *cobra.Command {
	var agent, session, definition, input string
	var wait bool
	cmd := &cobra.Command{
		Use:   "run MESSAGE",
		Short: "Send one message, print the answer",
		Long: "Sends one message to a session and prints the answer. MESSAGE - reads standard input.\n" +
			"With --wait it stays until every worker that was started is announced and answered;\n" +
			"without it, workers are paused when it ends and resumed by the next start, unless a\n" +
			"gateway runs. Ctrl-C cancels the message and its workers.",
		Example: "goclaw run \"what is in this folder?\"\ngit diff | goclaw run --session agent:main:api:user:reviews -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && definition == "" {
				return usagef("run needs a MESSAGE, or - for standard input; see goclaw run --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := sessionOf(cmd, agent, session)
			if err != nil {
				return err
			}
			if definition != "" && len(args) == 0 {
				args = []string{"Do what your input asks for."}
			}
			text, err := c.message(args)
			if err != nil {
				return err
			}
			if definition != "" {
				in, err := c.jsonFlag("--input", input)
				if err != nil {
					return err
				}
				return c.spawn(cmd.Context(), key, goclaw.SpawnRequest{
					Task: text, Agent: definition, Input: in, Model: c.model, Announce: goclaw.AnnounceNone,
				}, true)
			}
			if input != "" {
				return usagef("--input is for --agent-definition")
			}
			return c.runMessage(cmd.Context(), key, text, wait)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "main", "ID of the agent to talk to")
	cmd.Flags().StringVar(&session, "session", "", "KEY of the session (default: the agent's main session)")
	cmd.Flags().StringVar(&definition, "agent-definition", "", "NAME of a worker's definition: run it alone, with MESSAGE as its task")
	cmd.Flags().StringVar(&input, "input", "", "JSON that the definition asks for, @FILE, or - for standard input")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay until every worker is announced and answered")
	return cmd
}

// sessionOf is the session that --agent and --session name.
func sessionOf(cmd *cobra.Command, agent, session string) (goclaw.SessionKey, error) {
	if session == "" && !cmd.Flags().Changed("session") {
		if err := goclaw.CheckAgentID(agent); err != nil {
			return goclaw.SessionKey{}, usagef("--agent: %w", err)
		}
		return goclaw.MainKey(agent), nil
	}
	key, err := goclaw.ParseSessionKey(session)
	switch {
	case session == "":
		return key, usagef("--session is empty; goclaw sessions lists the keys")
	case err != nil:
		return key, usagef("--session: %w", err)
	case cmd.Flags().Changed("agent") && key.Agent != agent:
		return key, usagef("--agent %s and --session %s name different agents; give one of them", agent, session)
	}
	return key, nil
}

// message is what the arguments say, or standard input for "-".
func (c *cli) message(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(c.Stdin, maxMessage+1))
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		text = string(bytes.TrimPrefix(b, []byte("\uFEFF")))
	}
	switch {
	case len(text) > maxMessage:
		return "", usagef("the message is longer than %d MiB; put it into a file of the workspace and name that", maxMessage>>20)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", usagef("the message is no text (UTF-8); put binary data into a file of the workspace and name that")
	case strings.TrimSpace(text) == "":
		return "", usagef("the message is empty; write what the agent shall do")
	}
	return text, nil
}

func (c *cli) runMessage(ctx context.Context, key goclaw.SessionKey, text string, wait bool) (err error) {
	l, err := c.connect(ctx, toRun, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	out, err := c.converse(ctx, l, key, text, wait)
	if err := errors.Join(err, l.close()); err != nil {
		return err
	}
	switch {
	case out.Unfinished > 0 && wait:
		c.tellParked(out.Unfinished)
	case out.Unfinished > 0 && l.app != nil:
		c.tellPaused(out.Unfinished, " (--wait waits for them)")
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

// converse sends the message and waits for its outcome. Replies are printed as
// they come, unless JSON is wanted.
func (c *cli) converse(ctx context.Context, l link, key goclaw.SessionKey, text string, wait bool) (goclaw.Outcome, error) {
	telling, run := c.tell(ctx, l, key), ""
	defer func() { telling.stop(run) }()
	receipt, err := l.Receive(ctx, goclaw.Inbound{
		Session: key, Text: text, Key: uuid.NewString(), Model: cmp.Or(c.model, c.Getenv("GOCLAW_MODEL")),
	})
	if err != nil {
		return goclaw.Outcome{}, mendable(err)
	}
	if receipt.Run == nil {
		out := goclaw.Outcome{
			Session: key, Reply: receipt.Reply, Replies: []string{receipt.Reply},
			Runs: []goclaw.RunInfo{}, Status: goclaw.StateCompleted,
		}
		c.printReplies(out, 0)
		return out, nil
	}
	if run = receipt.Run.ID; l.app != nil {
		c.tellNotes(l.app)
	}
	if err := c.tellPause(ctx, l, "; the message waits"); err != nil {
		return goclaw.Outcome{}, err
	}
	out, err := c.await(ctx, l, run, wait)
	switch {
	case err != nil && ctx.Err() != nil:
		err = c.interrupted(ctx, l, run)
	case errors.Is(err, client.ErrNoGateway):
		err = fmt.Errorf("the gateway has stopped; what it accepted is kept, and goes on at its next start: %w", err)
	}
	return out, err
}

func (c *cli) await(ctx context.Context, l link, run string, wait bool) (goclaw.Outcome, error) {
	out, err := l.Await(ctx, run, false)
	printed := c.printReplies(out, 0)
	if err == nil && wait {
		out, err = l.Await(ctx, run, true)
		c.printReplies(out, printed)
	}
	return out, err
}

// interrupted ends what the message started when a person interrupts. Another
// signal is the machine's: then the work is kept.
func (c *cli) interrupted(ctx context.Context, l link, run string) error {
	cause := context.Cause(ctx)
	var sig stopped
	if errors.As(cause, &sig) && sig.Signal != os.Interrupt {
		after := "it will be resumed by the next start of goclaw"
		if l.app == nil {
			after = "the gateway goes on with it"
		}
		return exitError{exitNotCompleted, fmt.Errorf("%w; the run is kept: %s", cause, after)}
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if _, err := l.Cancel(after, run, "interrupted by the user"); err != nil {
		return exitError{exitNotCompleted, fmt.Errorf("interrupted; the run could not be cancelled: %w", err)}
	}
	if _, err := l.Await(after, run, false); err != nil {
		return exitError{exitNotCompleted, fmt.Errorf("interrupted; the run is being cancelled: %w", err)}
	}
	return exitError{exitNotCompleted, errors.New("interrupted; the run and its workers were cancelled")}
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
func (c *cli) tellNotes(a *app) {
	for _, n := range a.settings.notes {
		fmt.Fprintln(c.Stderr, "goclaw: "+n)
	}
}

func (c *cli) tellPaused(workers int, hint string) {
	fmt.Fprintf(c.Stderr, "goclaw: %s paused and will be resumed by the next start of goclaw%s\n",
		plural(workers, "worker is", "workers are"), hint)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
