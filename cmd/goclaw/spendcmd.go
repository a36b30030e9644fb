package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) usageCommand() *cobra.Command {
	q := goclaw.UsageQuery{By: []string{"day", "model"}}
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what models were used, and what that cost", Args: no,
		Long: "Sums the recorded model calls. CACHED is the share of the input that was read from the\n" +
			"provider's cache. What has no known price is shown as unknown, never as nothing.",
		Example: "goclaw usage --by agent,model --since 2026-01-01\ngoclaw usage --by definition --tree 0198f2c1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				rows, err := l.Usage(ctx, q)
				if err != nil {
					return named(err, q.Tree)
				}
				gateway.SortUsage(rows, q.By)
				return c.print(rows, func() string { return gateway.UsageTable(rows, q.By) })
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.By, "by", q.By, "columns to group by: some of agent, definition, model, trigger, day, tree, run")
	f.StringVar(&q.Since, "since", "", "first DAY, as 2006-01-02")
	f.StringVar(&q.Until, "until", "", "last DAY, as 2006-01-02")
	f.StringVar(&q.Agent, "agent", "", "ID of an agent: only its calls")
	f.StringVar(&q.Tree, "tree", "", "ID of a run: only what its tree of runs has used")
	complete(cmd, "by", "agent", "definition", "model", "day", "tree", "run")
	return cmd
}

func (c *cli) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause [WHY]", Short: "Stop all model calls until goclaw resume",
		Long: "Stops all model calls of this home, or of the database that it shares. Calls under way\n" +
			"are completed; no run begins another one until goclaw resume, also after a restart.",
		Example:           "goclaw pause \"the bill is too high\"",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				p, err := l.SetPause(ctx, true, strings.Join(args, " "))
				if err != nil {
					return err
				}
				return c.print(p, func() string { return gateway.PauseText(p) + "; goclaw resume goes on." })
			})
		},
	}
}

func (c *cli) unpauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Let models be called again after goclaw pause", Args: no,
		Long: "Lets models be called again after goclaw pause. (A worker that waits for you goes on with\n" +
			"goclaw subagent resume ID.)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.settling(cmd.Context(), func(ctx context.Context, l link) error {
				before, err := l.Paused(ctx)
				if err != nil {
					return err
				}
				p, err := l.SetPause(ctx, false, "")
				if err != nil {
					return err
				}
				return c.print(p, func() string {
					if before.At == 0 {
						return "Nothing was paused."
					}
					return "Going on: models are called again."
				})
			})
		},
	}
}

// tellPause says that no model is called, if that is so, and what it means.
func (c *cli) tellPause(ctx context.Context, l link, meaning string) error {
	p, err := l.Paused(ctx)
	if err == nil && p.At != 0 {
		fmt.Fprintf(c.Stderr, "goclaw: %s%s; goclaw resume goes on\n", gateway.PauseText(p), meaning)
	}
	return err
}
