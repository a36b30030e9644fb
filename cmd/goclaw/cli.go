package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "0.1.0-dev"

// cli is one invocation: what came from outside, and the global flags.
type cli struct {
	world
	began bool // the command line was understood

	config    string
	workspace string
	model     string
	json      bool
	verbose   bool
}

func (c *cli) execute(ctx context.Context) error {
	root := c.root()
	root.SetArgs(c.Args)
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	return fang.Execute(ctx, root, fang.WithVersion(version), fang.WithErrorHandler(quiet))
}

// quiet leaves the words about an error to run, which prints one plain line.
func quiet(io.Writer, fang.Styles, error) {}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "goclaw",
		Short: "A personal-agent gateway with a durable subagent runtime",
		Long: "GoClaw is a personal agent that works on your own machine: you talk with it,\n" +
			"it spawns workers that run in isolation, and nothing is lost when a process dies.",
		Example:       "goclaw chat\ngoclaw run --wait \"research tides and glaciers with two workers\"\ngoclaw gateway",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			c.began = true
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&c.config, "config", "", "configuration `FILE` (default GOCLAW_HOME/goclaw.json)")
	f.StringVar(&c.workspace, "workspace", "", "the main agent's working directory `DIR`")
	f.StringVar(&c.model, "model", "", "`PROVIDER/MODEL` to use instead of the configured one")
	f.BoolVar(&c.json, "json", false, "print JSON for scripts")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "log what happens to standard error")
	root.AddCommand(
		c.chatCommand(), c.runCommand(), c.gatewayCommand(), c.subagentCommand(),
		c.sessionsCommand(), c.contextCommand(), c.doctorCommand(), c.benchCommand(), c.versionCommand(),
	)
	return root
}

// logger writes to w what a person at a terminal wants to know, and everything
// from info on with --verbose.
func (c *cli) logger(w io.Writer, level slog.Level) *slog.Logger {
	if c.verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// print writes v as one JSON object with --json, else the text.
func (c *cli) print(v any, text func() string) error {
	if !c.json {
		_, err := fmt.Fprintln(c.Stdout, strings.TrimRight(text(), "\n"))
		return err
	}
	enc := json.NewEncoder(c.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.print(map[string]string{"version": version}, func() string { return "goclaw " + version })
		},
	}
}
