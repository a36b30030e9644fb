package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"

	"goclaw/internal/edge/redact"
	"goclaw/internal/edge/secret"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "0.1.0-dev"

// cli is one invocation: what came from outside, and the global flags.
type cli struct {
	world
	began bool          // the command line was understood
	vault *secret.Store // see secretStore
	hide  *redact.Redactor

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
	var failed error
	keepErrors(root, &failed)
	err := fang.Execute(ctx, root, fang.WithVersion(version), fang.WithErrorHandler(quiet))
	return errors.Join(failed, err)
}

// keepErrors puts what a command fails with into failed. If fang got it, it
// would ask the terminal for its colours, for words that it is not to write, and
// wait for seconds where the terminal has no answer.
func keepErrors(cmd *cobra.Command, failed *error) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*failed = run(cmd, args)
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		keepErrors(sub, failed)
	}
}

// quiet leaves the words about an error to run, which prints one plain line.
func quiet(io.Writer, fang.Styles, error) {}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "goclaw",
		Short: "A personal-agent gateway with a durable subagent runtime",
		Long: "GoClaw is a personal agent that works on your own machine: you talk with it,\n" +
			"it spawns workers that run in isolation, and nothing is lost when a process dies.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 the run did not complete.",
		Example:       "goclaw chat\ngoclaw run --wait \"research tides and glaciers with two workers\"\ngoclaw gateway",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			c.began = true
		},
	}
	group(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; %s", err, seeHelp(cmd))
	})
	root.SetHelpCommand(helpCommand())
	f := root.PersistentFlags()
	f.StringVar(&c.config, "config", "", "configuration FILE (default goclaw.json in GOCLAW_HOME)")
	f.StringVar(&c.workspace, "workspace", "", "working DIR of the main agent (default: the configured one)")
	f.StringVar(&c.model, "model", "", "model to use, PROVIDER/MODEL or an alias (default GOCLAW_MODEL, else the configured one)")
	f.BoolVar(&c.json, "json", false, "print JSON for scripts")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "log what happens to standard error")
	root.AddCommand(
		c.setupCommand(), c.configCommand(), c.secretsCommand(),
		c.chatCommand(), c.runCommand(), c.gatewayCommand(), c.pageCommand(), c.tokenCommand(), c.workerCommand(),
		c.subagentCommand(), c.sessionsCommand(), c.artifactsCommand(), c.agentsCommand(), c.flowCommand(),
		c.memoryCommand(), c.contextCommand(), c.skillsCommand(), c.trustCommand(),
		c.cronCommand(),
		c.usageCommand(), c.pauseCommand(), c.unpauseCommand(),
		c.backupCommand(), c.restoreCommand(), c.migrateCommand(),
		c.doctorCommand(), c.benchCommand(), c.openapiCommand(), c.versionCommand(),
	)
	return root
}

// group makes cmd a command that does nothing but hold others: by itself it
// shows its help.
func group(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := seeHelp(cmd)
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("unknown command %q; %s", nameOf(cmd, args[0]), hint)
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show what a command does and takes",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q; %s", strings.Join(args, " "), seeHelp(cmd.Root()))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// nameOf is how a person calls a command, without the program's name.
func nameOf(cmd *cobra.Command, more ...string) string {
	return strings.Join(append(strings.Fields(cmd.CommandPath())[1:], more...), " ")
}

func seeHelp(cmd *cobra.Command) string { return "see " + cmd.CommandPath() + " --help" }

// no refuses arguments.
func no(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no argument, but got %q; %s", nameOf(cmd), args[0], seeHelp(cmd))
}

// one wants exactly one argument; where says where to find such.
func one(name, where string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "" {
			return nil
		}
		return usagef("%s needs one %s; %s", nameOf(cmd), name, where)
	}
}

// logger writes to w what a person at a terminal wants to know, and everything
// from info on with --verbose.
func (c *cli) logger(w io.Writer, level slog.Level) *slog.Logger {
	if c.verbose {
		level = slog.LevelInfo
	}
	return slog.New(c.hide.Handler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
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
		Use: "version", Short: "Print the version", Args: no,
		RunE: func(*cobra.Command, []string) error {
			return c.print(map[string]string{"version": version}, func() string { return "goclaw " + version })
		},
	}
}
