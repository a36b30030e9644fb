package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) spawnWorker() *cobra.Command {
	var session, input, outputSchema string
	var timeout int
	var wait bool
	var q goclaw.SpawnRequest
	cmd := &cobra.Command{
		Use: "spawn TASK", Short: "Start a worker; its result is announced to the session",
		Long: "Starts a worker on behalf of a session, to which its result is announced. TASK - reads\n" +
			"standard input. With --wait it stays until the worker has ended, and prints its result;\n" +
			"Ctrl-C then cancels the worker.",
		Example: "goclaw subagent spawn --label tides --wait \"when is high water in Brest?\"",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("subagent spawn needs a TASK, or - for standard input; see goclaw subagent spawn --help")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := sessionOf(cmd, goclaw.DefaultAgent, session)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("timeout") {
				if timeout < 0 {
					return usagef("--timeout %d: want a number of seconds, 0 for none", timeout)
				}
				q.TimeoutSeconds = &timeout
			}
			if q.Task, err = c.message(args); err != nil {
				return err
			}
			q.Model = c.model
			if q.Input, err = c.jsonFlag("--input", input); err != nil {
				return err
			}
			if q.OutputSchema, err = c.jsonFlag("--output-schema", outputSchema); err != nil {
				return err
			}
			return c.spawn(cmd.Context(), key, q, wait)
		},
	}
	f := cmd.Flags()
	f.StringVar(&session, "session", "", "KEY of the session (default: the main agent's main session)")
	f.StringVar(&q.Label, "label", "", "short NAME of the worker")
	f.StringVar(&q.Context, "context", "", "TEXT that the worker would otherwise have to find out")
	f.StringVar(&q.Thinking, "thinking", "", "off, low, medium or high")
	f.StringVar(&q.Agent, "agent", "", "NAME of the worker's definition (goclaw agents list)")
	f.StringVar(&input, "input", "", "JSON that the definition asks for, @FILE, or - for standard input")
	f.StringVar(&outputSchema, "output-schema", "", "JSON Schema that the answer must fit, @FILE, or - for standard input")
	f.StringVar(&q.AgentID, "agent-id", "", "ID of the configured agent as which it works (default: the session's)")
	f.StringVar((*string)(&q.Cleanup), "cleanup", "", "keep or delete its transcript once its result was announced (default keep)")
	f.IntVar(&timeout, "timeout", 0, "end it after this many seconds, 0 for none (default: the configured time)")
	f.BoolVar(&wait, "wait", false, "stay until it has ended, and print its result")
	complete(cmd, "thinking", "off", "low", "medium", "high")
	complete(cmd, "cleanup", "keep", "delete")
	return cmd
}

// jsonFlag is the JSON that a flag holds, nil if it is not given: as it is, of
// @FILE, or of standard input for "-".
func (c *cli) jsonFlag(flag, text string) (json.RawMessage, error) {
	from, what := io.Reader(strings.NewReader(text)), flag
	switch name, isFile := strings.CutPrefix(text, "@"); {
	case text == "":
		return nil, nil
	case text == "-":
		from, what = c.Stdin, flag+": standard input"
	case isFile:
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("%s: %s can't be read: %w", flag, name, reason(err))
		}
		defer file.Close()
		from, what = file, flag+": "+name
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\uFEFF")))
	var v json.RawMessage
	switch bad := json.Unmarshal(raw, &v); {
	case err != nil:
		return nil, usagef("%s can't be read: %w", what, reason(err))
	case len(raw) > maxMessage:
		return nil, usagef("%s is longer than %d MiB; put it into a file of the workspace and name that", what, maxMessage>>20)
	case len(raw) == 0:
		return nil, usagef("%s is empty; it is read once, by MESSAGE or by a flag", what)
	case bad != nil:
		return nil, usagef("%s is no JSON: %w%s", what, bad, jsonHint(raw))
	}
	return raw, nil
}

// jsonHint helps with what shells do to quotes.
func jsonHint(raw []byte) string {
	if bytes.HasPrefix(raw, []byte("{")) && !bytes.Contains(raw, []byte(`"`)) {
		return "; put it into single quotes, as in '{\"goal\": \"…\"}'"
	}
	return ""
}

// complete offers a flag's values to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func (c *cli) spawn(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest, wait bool) error {
	return c.startRun(ctx, key, wait, func(l link) (goclaw.SpawnReply, error) { return l.Spawn(ctx, key, q, uuid.NewString()) })
}

// startRun starts a run, and with wait stays until it has ended and prints its
// result.
func (c *cli) startRun(ctx context.Context, key goclaw.SessionKey, wait bool, start func(link) (goclaw.SpawnReply, error)) (err error) {
	want := toSettle
	if wait {
		want = toRun
	}
	l, err := c.connect(ctx, want, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	reply, err := start(l)
	if err != nil {
		return mendable(err)
	}
	if reply.Note != "" {
		fmt.Fprintln(c.Stderr, "goclaw: "+reply.Note)
	}
	if wait && l.app != nil {
		c.tellNotes(l.app)
	}
	if err := c.tellPause(ctx, l, "; the worker waits"); err != nil {
		return err
	}
	if !wait {
		c.tellAlone(l, "the worker starts")
		return c.print(reply, func() string {
			return "Started " + reply.RunID + "; its result will be announced to " + key.String() + "."
		})
	}
	run, err := l.WaitRun(ctx, reply.RunID)
	switch {
	case err != nil && ctx.Err() != nil:
		return c.interrupted(ctx, l, reply.RunID)
	case err != nil:
		return err
	}
	if err := c.print(run.Info(), func() string { return run.Result }); err != nil {
		return err
	}
	return completed([]goclaw.RunInfo{run.Info()})
}

// completed is an error if a run did not complete.
func completed(runs []goclaw.RunInfo) error {
	var lines []string
	for _, r := range runs {
		if r.Status.Ended() && r.Status != goclaw.StateCompleted {
			lines = append(lines, fmt.Sprintf("%s ended %s: %s", r.Label, r.Status, r.Error))
		}
	}
	if lines == nil {
		return nil
	}
	return exitError{exitNotCompleted, errors.New(strings.Join(lines, "\n"))}
}

func (c *cli) steerWorker() *cobra.Command {
	return &cobra.Command{
		Use: "steer ID MESSAGE", Short: "Send a worker a message, which it reads before its next step",
		Long: "Sends a worker a message, which it reads before its next step. MESSAGE - reads standard\n" +
			"input.",
		Example: "goclaw subagent steer 0198f2c1 \"look at the tests only\"",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || args[0] == "" {
				return usagef("subagent steer needs an ID and a MESSAGE; goclaw subagent list lists the workers under way")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.message(args[1:])
			if err != nil {
				return err
			}
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				run, err := l.Steer(ctx, args[0], text, uuid.NewString())
				if err != nil {
					return named(err, args[0])
				}
				c.tellAlone(l, "the worker goes on, and reads it,")
				return c.print(run.Info(), func() string { return run.Name() + " reads it before its next step." })
			})
		},
	}
}

func (c *cli) resumeWorker() *cobra.Command {
	return &cobra.Command{
		Use: "resume ID", Short: "Let a worker go on that waits for you (restartPolicy ask)", Args: oneRun(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				run, err := l.Resume(ctx, args[0])
				if err != nil {
					return named(err, args[0])
				}
				c.tellAlone(l, "the worker goes on")
				return c.print(run.Info(), func() string { return run.Name() + " goes on." })
			})
		},
	}
}

func (c *cli) waitWorkers() *cobra.Command {
	var timeout int
	cmd := &cobra.Command{
		Use: "wait ID...", Short: "Stay until runs have ended",
		Long: "Stays until all of the runs have ended. Without a gateway it executes the home's runs\n" +
			"meanwhile. Exit code 3 says that one of them did not complete, 1 that the time was over.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usagef("subagent wait needs an ID; goclaw subagent list lists the workers under way")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			limited := cmd.Flags().Changed("timeout")
			if limited && timeout < 1 {
				return usagef("--timeout %d: want 1 second or more", timeout)
			}
			ctx := cmd.Context()
			if limited {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(timeout)*time.Second, errOver)
				defer cancel()
			}
			return c.wait(ctx, args)
		},
	}
	cmd.Flags().IntVar(&timeout, "timeout", 0, "give up after this many seconds (default: never)")
	return cmd
}

// errOver is the cause of a wait's end.
var errOver = errors.New("the time is over")

// wait looks first: nothing is executed for runs that have ended.
func (c *cli) wait(ctx context.Context, ids []string) error {
	var runs []goclaw.RunInfo
	err := c.reading(ctx, func(ctx context.Context, l link) error {
		for _, id := range ids {
			run, err := l.Run(ctx, id)
			if err != nil {
				return named(err, id)
			}
			runs = append(runs, run.Info())
		}
		return nil
	})
	if err == nil && openRuns(runs) != "" {
		err = c.waitFor(ctx, runs)
	}
	if err != nil && !errors.Is(err, errOver) {
		return err
	}
	if err := c.print(runs, func() string { return gateway.RunTable(runs, time.Now()) }); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("the time is over, and not ended: %s", cmp.Or(openRuns(runs), "none of them"))
	}
	return completed(runs)
}

// waitFor blocks until the runs have ended, and brings what is known of them
// up to date.
func (c *cli) waitFor(ctx context.Context, runs []goclaw.RunInfo) (err error) {
	l, err := c.connect(ctx, toRun, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := c.tellPause(ctx, l, ""); err != nil {
		return err
	}
	for _, r := range runs {
		if r.WaitsFor == goclaw.WaitPerson {
			fmt.Fprintf(c.Stderr, "goclaw: %s waits for you: goclaw subagent resume %.8s, or cancel it\n", r.Label, r.RunID)
		}
	}
	for i, r := range runs {
		if r.Status.Ended() {
			continue
		}
		run, err := l.WaitRun(ctx, r.RunID)
		if err != nil {
			c.refresh(ctx, l, runs[i:])
			return err
		}
		runs[i] = run.Info()
	}
	return nil
}

// refresh brings what is known of runs up to date, as far as that is possible
// after ctx's end.
func (c *cli) refresh(ctx context.Context, l link, runs []goclaw.RunInfo) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthAnswer)
	defer cancel()
	for i, r := range runs {
		if run, err := l.Run(ctx, r.RunID); err == nil {
			runs[i] = run.Info()
		}
	}
}

// openRuns names those that have not ended.
func openRuns(runs []goclaw.RunInfo) string {
	var names []string
	for _, r := range runs {
		if !r.Status.Ended() {
			names = append(names, r.Label)
		}
	}
	return strings.Join(names, ", ")
}
