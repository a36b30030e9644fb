package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Execute runs of a shared database until stopped", Args: no,
		Long: "Executes runs of the PostgreSQL database that GOCLAW_DATABASE_URL (or database.url) names,\n" +
			"beside the gateways and workers of other hosts. It serves no HTTP. Workspaces must be at\n" +
			"the same paths on every host. It prints \"ready\" once it executes runs.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.work(cmd.Context()) },
	}
}

// leaveTurns is how long a worker leaves a turn to the gateway that accepted
// it, which can show it as it streams.
const leaveTurns = time.Second

func (c *cli) work(ctx context.Context) (err error) {
	s, cfg, err := c.locate()
	if err != nil {
		return err
	}
	if !s.shared() {
		return usagef("a worker shares a PostgreSQL database with gateways, and none is configured: set GOCLAW_DATABASE_URL or database.url (on one machine goclaw gateway executes its runs itself)")
	}
	if err := s.home.prepare(); err != nil {
		return err
	}
	if err := c.settle(&s, cfg); err != nil {
		return err
	}
	s.turnsAfter = leaveTurns
	a, err := open(ctx, s, nil, c.logger(c.Stderr, slog.LevelInfo), c.Hook)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	c.tellNotes(a)
	a.start(ctx)
	fmt.Fprintln(c.Stdout, "ready")
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.broken:
		return err
	}
}
