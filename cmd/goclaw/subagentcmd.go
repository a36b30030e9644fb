package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) subagentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "subagent", Short: "Look at workers and end them", Aliases: []string{"subagents"},
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
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
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N` of them")
	return cmd
}

func (c *cli) showRun() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				log, err := l.RunLog(ctx, args[0])
				if err != nil {
					return err
				}
				return c.print(log.Run.Info(), func() string { return gateway.RunDetails(log.Run, time.Now()) })
			})
		},
	}
}

func (c *cli) logRun() *cobra.Command {
	return &cobra.Command{
		Use: "log ID", Short: "Show a run's steps", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				log, err := l.RunLog(ctx, args[0])
				if err != nil {
					return err
				}
				return c.print(log.Events, func() string { return gateway.EventTable(log.Events) })
			})
		},
	}
}

func (c *cli) cancelRun() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Cancel a run and all that it started", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			l, err := c.connect(ctx, toSettle, c.logger(c.Stderr, slog.LevelError))
			if err != nil {
				return err
			}
			defer func() {
				if cerr := l.close(); err == nil {
					err = cerr
				}
			}()
			runs, err := l.Cancel(ctx, args[0], "cancelled by the user")
			if err != nil {
				return err
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
	defer func() {
		if cerr := l.close(); err == nil {
			err = cerr
		}
	}()
	return ask(ctx, l)
}
