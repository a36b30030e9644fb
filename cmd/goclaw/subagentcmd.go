package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) subagentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "subagent", Short: "Look at workers, start, steer and end them", Aliases: []string{"subagents"},
		Long: "Looks at workers, starts, steers and ends them. An ID is a run's id or an unambiguous\n" +
			"beginning of it.",
	}
	group(cmd)
	cmd.AddCommand(
		c.listWorkers(), c.workerHistory(), c.showRun(), c.logRun(), c.cancelRun(),
		c.spawnWorker(), c.steerWorker(), c.waitWorkers(), c.resumeWorker(),
		c.decideParked("retry", "Try a parked delivery again", "It is tried again.", (*client.Client).RetryParked),
		c.decideParked("dismiss", "Give a parked delivery up for good", "It will not be told.", (*client.Client).DismissParked),
	)
	return cmd
}

const defaultLimit = 100

func (c *cli) listWorkers() *cobra.Command {
	var all, tree, parked bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the workers under way", Args: no,
		Long: "Lists the workers under way, newest first; with --parked the results and replies that\n" +
			"could not be delivered and wait for you to retry or dismiss them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if parked {
				if all || tree || cmd.Flags().Changed("limit") {
					return usagef("--parked lists deliveries: it goes without --all, --tree and --limit")
				}
				return c.listParked(cmd.Context())
			}
			return c.listRuns(cmd.Context(), !all, tree, limit)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "ended ones, too")
	cmd.Flags().BoolVar(&tree, "tree", false, "each below the one that started it")
	cmd.Flags().BoolVar(&parked, "parked", false, "deliveries that wait for you, instead")
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "list at most N of them")
	return cmd
}

func (c *cli) workerHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history", Short: "List workers, newest first, ended ones too", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listRuns(cmd.Context(), false, false, limit) },
	}
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "list at most N of them")
	return cmd
}

func (c *cli) listRuns(ctx context.Context, active, tree bool, limit int) error {
	if limit < 1 {
		return usagef("--limit %d: want 1 or more", limit)
	}
	return c.reading(ctx, func(ctx context.Context, l link) error {
		placed, err := l.Placed(ctx, goclaw.RunFilter{
			Triggers: []goclaw.Trigger{goclaw.TriggerSpawn, goclaw.TriggerCron}, Active: active, Limit: limit,
		})
		if err != nil {
			return err
		}
		runs := make([]goclaw.RunInfo, 0, len(placed))
		for _, r := range placed {
			if r.Session.IsWorker() { // a job's turn in a chat is no worker's
				runs = append(runs, r.Info())
			}
		}
		if tree {
			runs = gateway.Tree(runs)
		}
		if err := c.print(runs, func() string { return gateway.RunTable(runs, time.Now()) }); err != nil {
			return err
		}
		return c.tellHindrances(ctx, l)
	})
}

// tellHindrances says what keeps work from going on, or results from coming.
func (c *cli) tellHindrances(ctx context.Context, l link) error {
	if err := c.tellPause(ctx, l, ""); err != nil {
		return err
	}
	parked, err := l.Parked(ctx)
	if err == nil && len(parked) > 0 {
		c.tellParked(len(parked))
	}
	return err
}

func (c *cli) tellParked(n int) {
	fmt.Fprintf(c.Stderr, "goclaw: %s parked: see goclaw subagent list --parked\n", plural(n, "delivery is", "deliveries are"))
}

func (c *cli) listParked(ctx context.Context) error {
	return c.reading(ctx, func(ctx context.Context, l link) error {
		parked, err := l.Parked(ctx)
		if err != nil {
			return err
		}
		return c.print(parked, func() string { return gateway.ParkedTable(parked) })
	})
}

// decideParked is a command that decides about a parked delivery.
func (c *cli) decideParked(name, short, done string, do func(*client.Client, context.Context, string) (goclaw.Parked, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: one("ID", "goclaw subagent list --parked lists them"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				parked, err := do(l.Client, ctx, args[0])
				if errors.Is(err, goclaw.ErrNotFound) {
					return fmt.Errorf("nothing parked is named %q; goclaw subagent list --parked lists what is", args[0])
				}
				if err != nil {
					return err
				}
				if name == "retry" {
					c.tellAlone(l, "it is tried")
				}
				return c.print(parked, func() string { return done })
			})
		},
	}
}

func (c *cli) showRun() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one run", Args: oneRun(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				run, err := l.Run(ctx, args[0])
				if err != nil {
					return named(err, args[0])
				}
				left, err := l.Artifacts(ctx, goclaw.ArtifactFilter{Run: run.ID})
				if err != nil {
					return err
				}
				shown := struct {
					goclaw.RunInfo
					Artifacts []goclaw.ArtifactInfo `json:"artifacts"`
				}{run.Info(), left}
				return c.print(shown, func() string { return gateway.RunDetails(run.Run, run.Position, plain(left), time.Now()) })
			})
		},
	}
}

func (c *cli) logRun() *cobra.Command {
	return &cobra.Command{
		Use: "log ID", Short: "Show a run's steps", Args: oneRun(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				log, err := l.RunLog(ctx, args[0])
				if err != nil {
					return named(err, args[0])
				}
				return c.print(log.Events, func() string { return gateway.EventTable(log.Events) })
			})
		},
	}
}

func (c *cli) cancelRun() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Cancel a run and all that it started", Args: oneRun(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				runs, err := l.Cancel(ctx, args[0], "cancelled by the user")
				if err != nil {
					return named(err, args[0])
				}
				if l.app != nil && l.app.lock != nil {
					if err := l.app.engine.Settle(ctx); err != nil {
						return err
					}
				}
				return c.print(infosOf(runs), func() string {
					if len(runs) == 0 {
						return "Nothing to cancel: that run has ended, or its cancellation was asked already."
					}
					return "Cancelled " + plural(len(runs), "run.", "runs.")
				})
			})
		},
	}
}

func infosOf(runs []goclaw.Run) []goclaw.RunInfo {
	infos := make([]goclaw.RunInfo, len(runs))
	for i, r := range runs {
		infos[i] = r.Info()
	}
	return infos
}

// reading connects for questions only.
func (c *cli) reading(ctx context.Context, ask func(context.Context, link) error) (err error) {
	l, err := c.connect(ctx, toRead, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return mendable(ask(ctx, l))
}

// settling connects to change what is on record, without executing anything.
func (c *cli) settling(ctx context.Context, do func(context.Context, link) error) (err error) {
	l, err := c.connect(ctx, toSettle, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return mendable(do(ctx, l))
}

// tellAlone says when something happens if no process executes the home's runs.
func (c *cli) tellAlone(l link, what string) {
	if l.app != nil && l.app.alone() {
		fmt.Fprintf(c.Stderr, "goclaw: no gateway runs: %s with the next goclaw gateway or goclaw chat\n", what)
	}
}

// named says which run was not found, and where to find others.
func named(err error, id string) error {
	if errors.Is(err, goclaw.ErrNotFound) && id != "" {
		return fmt.Errorf("there is no run %q; goclaw subagent history lists the workers, and 4 characters of an id may stand for it", id)
	}
	return mendable(err)
}

func oneRun() cobra.PositionalArgs { return one("ID", "goclaw subagent history lists them") }

// mendable gives an error that the caller can mend the exit code of bad usage.
func mendable(err error) error {
	if goclaw.IsBadRequest(err) {
		return usage(err)
	}
	return err
}
