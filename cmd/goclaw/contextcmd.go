package main

import (
	"context"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

// contextReport is what `goclaw context --json` prints (spec section 12).
type contextReport struct {
	Sections []goclaw.Section  `json:"sections"`
	Tools    []goclaw.ToolSpec `json:"tools"`
	Omitted  []goclaw.Omission `json:"omitted"`
	Warnings []string          `json:"warnings"`
	Total    int               `json:"total"` // tokens, tools included
}

func (c *cli) contextCommand() *cobra.Command {
	var agent, session, run string
	var text bool
	cmd := &cobra.Command{
		Use: "context", Short: "Show what an agent is shown, section by section", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run != "" && (session != "" || cmd.Flags().Changed("agent")) {
				return usagef("a run has its own session; give --run alone")
			}
			key, err := sessionOf(cmd, agent, session)
			if err != nil {
				return err
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				q := goclaw.ContextQuery{Session: key}
				if run != "" {
					q = goclaw.ContextQuery{Run: run}
				}
				p, err := l.Context(ctx, q)
				if err != nil {
					return named(err, run)
				}
				return c.print(report(p), func() string {
					if text {
						return sectionTexts(p)
					}
					return gateway.PromptTable(p)
				})
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "main", "ID of the agent whose main session it is about")
	cmd.Flags().StringVar(&session, "session", "", "KEY of the session")
	cmd.Flags().StringVar(&run, "run", "", "ID of a run: what it was shown")
	cmd.Flags().BoolVar(&text, "text", false, "print the sections' texts")
	return cmd
}

func report(p goclaw.Prompt) contextReport {
	r := contextReport{Sections: p.Sections, Tools: p.Tools, Omitted: p.Omitted, Warnings: p.Warnings}
	if r.Omitted == nil {
		r.Omitted = []goclaw.Omission{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	for _, s := range p.Sections {
		r.Total += s.Tokens
	}
	for _, t := range p.Tools {
		r.Total += (len(t.Name) + len(t.Description) + len(t.Schema) + 3) / 4
	}
	return r
}

func sectionTexts(p goclaw.Prompt) string {
	var out string
	for _, s := range p.Sections {
		out += "--- " + s.ID + " (" + s.Source + ")\n" + s.Text + "\n"
	}
	return out
}
