package main

import (
	"context"
	"fmt"
	"log/slog"

	"errors"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/edge/config"
	"goclaw/internal/runtime/gateway"
)

// testAgent runs a definition alone.
func (c *cli) testAgent() *cobra.Command {
	var agent, input, extra string
	cmd := &cobra.Command{
		Use: "test NAME TASK", Short: "Run a definition alone: its prompt, its answer, what it cost",
		Long: "Spawns a worker by its definition, on behalf of nobody's chat, waits for it and shows the\n" +
			"prompt that it was given, section by section, its answer and what it cost.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("agents test needs a NAME and a TASK, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := sessionOf(cmd, agent, "")
			if err != nil {
				return err
			}
			task, err := c.message(args[1:])
			if err != nil {
				return err
			}
			in, err := c.jsonFlag("--input", input)
			if err != nil {
				return err
			}
			return c.tryAgent(cmd.Context(), key, goclaw.SpawnRequest{
				Agent: args[0], Task: task, Context: extra, Input: in, Model: c.model, Announce: goclaw.AnnounceNone,
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", config.DefaultAgent, "ID of the agent whose worker it is")
	cmd.Flags().StringVar(&input, "input", "", "JSON that the definition asks for, @FILE, or - for standard input")
	cmd.Flags().StringVar(&extra, "context", "", "TEXT that the worker would otherwise have to find out")
	return cmd
}

// agentTest is what `goclaw agents test --json` prints.
type agentTest struct {
	Prompt goclaw.PromptReport `json:"prompt"`
	Run    goclaw.RunInfo      `json:"run"`
}

func (c *cli) tryAgent(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest) (err error) {
	l, err := c.connect(ctx, toRun, c.logger(c.Stderr, slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	reply, err := l.Spawn(ctx, key, q, uuid.NewString())
	if err != nil {
		return mendable(err)
	}
	if reply.Note != "" {
		fmt.Fprintln(c.Stderr, "goclaw: "+reply.Note)
	}
	run, err := l.WaitRun(ctx, reply.RunID)
	if err != nil && ctx.Err() != nil {
		return c.interrupted(ctx, l, reply.RunID)
	}
	if err != nil {
		return err
	}
	prompt, err := l.Context(ctx, goclaw.ContextQuery{Run: run.ID})
	if err != nil {
		return err
	}
	err = c.print(agentTest{prompt.Report(), run.Info()}, func() string {
		return gateway.PromptTable(prompt) + "\n\n" + run.Result + "\n\n" + announce.Statistics(run)
	})
	if err != nil {
		return err
	}
	return completed([]goclaw.RunInfo{run.Info()})
}
