package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) memoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "Search what an agent remembers",
		Long: "Searches MEMORY.md, memory/*.md and the past conversations of an agent. The index is made of\n" +
			"them and brought up to date with each search; nothing is lost when it is deleted.",
	}
	group(cmd)
	cmd.AddCommand(c.memorySearchCommand(), c.memoryStatusCommand(), &cobra.Command{
		Use: "reindex", Short: "Make the index anew, of all agents", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				all, err := l.ReindexMemory(ctx)
				if err != nil {
					return err
				}
				return c.print(all, func() string {
					texts := make([]string, len(all))
					for i, s := range all {
						texts[i] = gateway.MemoryStatusText(s)
					}
					return strings.Join(texts, "\n")
				})
			})
		},
	})
	return cmd
}

func (c *cli) memorySearchCommand() *cobra.Command {
	var q goclaw.MemoryQuery
	var sources []string
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "Search by a question in everyday words, or keywords",
		Example:           "goclaw memory search \"what did we say about the roof last week?\"\ngoclaw memory search --source files 'dentist'",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return usagef("%s needs a QUERY; %s", nameOf(cmd), seeHelp(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			if cmd.Flags().Changed("limit") && (q.Limit < 1 || q.Limit > 50) {
				return usagef("--limit %d: want 1 to 50", q.Limit)
			}
			for _, s := range sources {
				source := goclaw.MemorySource(s)
				if source != goclaw.MemoryFiles && source != goclaw.MemoryTranscripts {
					return usagef("--source %q: want %s or %s", s, goclaw.MemoryFiles, goclaw.MemoryTranscripts)
				}
				q.Sources = append(q.Sources, source)
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				found, err := l.SearchMemory(ctx, q)
				if err != nil {
					return err
				}
				return c.print(found, func() string { return gateway.MemoryText(found) })
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "ID of the agent (default main)")
	f.IntVar(&q.Limit, "limit", 0, "at most `N` results (default 8)")
	f.StringSliceVar(&sources, "source", nil, "search only files or transcripts")
	complete(cmd, "source", string(goclaw.MemoryFiles), string(goclaw.MemoryTranscripts))
	return cmd
}

func (c *cli) memoryStatusCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "status", Short: "Show what is indexed, and what could not be", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				s, err := l.MemoryStatus(ctx, agent)
				if err != nil {
					return err
				}
				return c.print(s, func() string { return gateway.MemoryStatusText(s) })
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "ID of the agent (default main)")
	return cmd
}
