package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
)

func (c *cli) gatewayCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "gateway", Short: "Serve the HTTP API and run the home's runs until stopped", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			l, err := c.connect(ctx, toServe, c.logger(c.Stderr, slog.LevelInfo))
			if err != nil {
				return err
			}
			c.tellNotes(l)
			if addr == "" {
				addr = l.app.settings.addr
			}
			url, err := l.app.listen(addr)
			if err != nil {
				return errors.Join(err, l.close())
			}
			fmt.Fprintln(c.Stdout, "ready "+url)
			<-ctx.Done()
			return l.close()
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "`HOST:PORT` to listen on (default "+defaultAddr+"; port 0 chooses one)")
	return cmd
}

const defaultAddr = "127.0.0.1:7717"
