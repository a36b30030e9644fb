package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) subagentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "subagent", Short: "Look at workers and end them", Aliases: []string{"subagents"},
		Long: "Looks at workers and ends them. An ID is a run's id or an unambiguous beginning of it.",
	}
	group(cmd)
	cmd.AddCommand(
		c.listRuns("list", "List the workers under way", true),
		c.listRuns("history", "List workers, newest first, ended ones too", false),
		c.showRun(), c.logRun(), c.cancelRun(),
	)
	return cmd
}

func (c *cli) listRuns(name, short string, active bool) *cobra.Command {
	limit := 100
	cmd := &cobra.Command{
		Use: name, Short: short, Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				runs, err := l.Runs(ctx, goclaw.RunFilter{
					Triggers: []goclaw.Trigger{goclaw.TriggerSpawn, goclaw.TriggerCron}, Active: active, Limit: limit,
				})
				if err != nil {
					return err
				}
				infos := make([]goclaw.RunInfo, len(runs))
				for i, r := range runs {
					infos[i] = r.Info()
				}
				return c.print(infos, func() string { return gateway.RunTable(runs, time.Now()) })
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "list at most N of them")
	return cmd
}

func (c *cli) showRun() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one run", Args: oneRun(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				log, err := l.RunLog(ctx, args[0])
				if err != nil {
					return named(err, args[0])
				}
				return c.print(log.Run.Info(), func() string { return gateway.RunDetails(log.Run, time.Now()) })
			})
		},
	}
}

func (c *cli) logRun() *cobra.Command {
	return &cobra.Command{
		Use: "log ID", Short: "Show a run's steps", Args: oneRun(),
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
		Use: "cancel ID", Short: "Cancel a run and all that it started", Args: oneRun(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			l, err := c.connect(ctx, toSettle, c.logger(c.Stderr, slog.LevelError))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, l.close()) }()
			runs, err := l.Cancel(ctx, args[0], "cancelled by the user")
			if err != nil {
				return named(err, args[0])
			}
			if l.app != nil && l.app.lock != nil {
				if err := l.app.engine.Settle(ctx); err != nil {
					return err
				}
			}
			infos := make([]goclaw.RunInfo, len(runs))
			for i, r := range runs {
				infos[i] = r.Info()
			}
			return c.print(infos, func() string {
				if len(runs) == 0 {
					return "Nothing to cancel: that run has ended, or its cancellation was asked already."
				}
				return "Cancelled " + plural(len(runs), "run.", "runs.")
			})
		},
	}
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
