package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
)

const defaultAddr = "127.0.0.1:7717"

func (c *cli) gatewayCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "gateway", Short: "Serve the HTTP API and run the home's runs until stopped", Args: no,
		Long: "Serves the HTTP API and executes the runs of GOCLAW_HOME until it is stopped. It prints\n" +
			"\"ready http://…\" once it serves. Clients send the token in the file token of GOCLAW_HOME,\n" +
			"or GOCLAW_TOKEN if that is set. What is under way when it stops goes on at the next start.",
		Example: "goclaw gateway --addr 127.0.0.1:8080",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if addr != "" {
				if err := checkAddr(addr); err != nil {
					return usagef("--addr: %w", err)
				}
			}
			l, err := c.connect(cmd.Context(), toServe, c.logger(c.Stderr, slog.LevelInfo))
			if err != nil {
				return err
			}
			return errors.Join(c.serve(cmd.Context(), l.app, addr), l.close())
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "HOST:PORT to listen on (default "+defaultAddr+"; port 0 chooses one)")
	return cmd
}

// serve runs the gateway until ctx ends or it breaks.
func (c *cli) serve(ctx context.Context, a *app, addr string) error {
	if addr == "" {
		addr = a.settings.addr
	}
	l, err := bind(addr)
	if err != nil {
		return err
	}
	if err := a.settings.checkReach(addr); err != nil {
		return errors.Join(err, l.Close())
	}
	c.tellNotes(a)
	a.clock = true
	a.start(ctx)
	url, err := a.serve(ctx, l)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Stdout, "ready "+url)
	if err := c.tellPage(ctx, a); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.broken:
		return err
	}
}
