package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) contextCommand() *cobra.Command {
	var agent, session, run, sent, definition, input string
	var step int
	var text bool
	cmd := &cobra.Command{
		Use: "context", Short: "Show what an agent is shown, section by section", Args: no,
		Long: "Shows what the next turn of a session is shown, or what a run was shown: every section with\n" +
			"its source and tokens, where the part ends that stays cached, and what was left out and why.",
		Example: "goclaw context --session agent:main:main\ngoclaw context --run 0198f2c1 --text\n" +
			"goclaw context --as-sent 0198f2c1 --step 2 > body.json\ngoclaw context diff 0198f2c1#1 0198f2c1#2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			about := run + sent
			if (run != "" && sent != "") || about != "" && (session != "" || cmd.Flags().Changed("agent")) {
				return usagef("a run has its own session; give --run or --as-sent alone")
			}
			in, err := c.jsonFlag("--input", input)
			if err != nil {
				return err
			}
			if about != "" && definition != "" || input != "" && definition == "" {
				return usagef("--definition is about a worker to come, and --input for it")
			}
			if cmd.Flags().Changed("step") && (sent == "" || step < 1) {
				return usagef("--step %d: want the number of a model call, from 1, with --as-sent RUN", step)
			}
			key, err := sessionOf(cmd, agent, session)
			if err != nil {
				return err
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				if sent != "" {
					return c.printSent(ctx, l, sent, step)
				}
				q := goclaw.ContextQuery{Session: key, Definition: definition, Input: string(in)}
				if run != "" {
					q = goclaw.ContextQuery{Run: run}
				}
				p, err := l.Context(ctx, q)
				if err != nil {
					return named(err, run)
				}
				return c.print(p.Report(), func() string {
					if text {
						return sectionTexts(p)
					}
					return gateway.PromptTable(p)
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "main", "ID of the agent whose main session it is about")
	f.StringVar(&session, "session", "", "KEY of the session")
	f.StringVar(&run, "run", "", "ID of a run: what it was shown")
	f.StringVar(&definition, "definition", "", "NAME of a definition: what a worker would be shown, with its slices")
	f.StringVar(&input, "input", "", "JSON that the definition asks for, @FILE, or - for standard input")
	f.BoolVar(&text, "text", false, "print the sections' texts")
	f.StringVar(&sent, "as-sent", "", "ID of a run (or KEY of a session): print the body of its last request to the model, byte for byte")
	f.IntVar(&step, "step", 0, "with --as-sent: which model call of the run, from 1 (default: the last)")
	cmd.AddCommand(c.contextDiffCommand())
	return cmd
}

// printSent writes the body and nothing else: no line end, no JSON around it.
func (c *cli) printSent(ctx context.Context, l link, run string, step int) error {
	sent, err := l.AsSent(ctx, run, step)
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(sent.Body)
	return err
}

func (c *cli) contextDiffCommand() *cobra.Command {
	var exitCode bool
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Show where two requests to a model begin to differ",
		Long: "Compares two requests as they were sent, byte by byte, in the order in which they are cached:\n" +
			"tools, system prompt, messages. Cache breakpoints don't count. A and B are each the key of a\n" +
			"session (its last request, or what its first turn begins with), the ID of a run (its last\n" +
			"request) or ID#STEP.",
		Example:           "goclaw context diff 0198f2c1 0198f2d7\ngoclaw context diff agent:main:main agent:main:api:user:ann --exit-code",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return usagef("context diff needs two requests, A and B; %s", seeHelp(cmd))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				d, err := l.ContextDiff(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				if err := c.print(d, func() string { return gateway.DiffText(d) }); err != nil {
					return err
				}
				if exitCode && !d.Equal {
					return exitError{code: exitFailed} // said already
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if they differ")
	return cmd
}

func sectionTexts(p goclaw.Prompt) string {
	var out strings.Builder
	for _, s := range p.Sections {
		out.WriteString("--- " + s.ID + " (" + s.Source + ")\n" + s.Text + "\n")
	}
	return out.String()
}
