package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/cmd/goclaw/bench"
	"goclaw/cmd/goclaw/bench/recall"
)

func (c *cli) benchCommand() *cobra.Command {
	var quick bool
	var only []string
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure this goclaw on this machine", Args: cobra.NoArgs,
		Long: "Measures this goclaw on this machine: starts, memory, turns, workers, durable runs, request sizes.\n" +
			"It runs gateways of its own on temporary homes against a model server of its own; your home is not touched.\n" +
			"A full measurement takes some minutes, and wants a machine that does nothing else.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.bench(cmd.Context(), quick, only) },
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "few repetitions, to check that it works")
	cmd.Flags().StringSliceVar(&only, "only", nil, "measure only these `PARTS`: "+strings.Join(bench.Parts(), ", "))
	cmd.AddCommand(c.benchMemoryCommand())
	cmd.AddCommand(&cobra.Command{
		Use: "model-server", Short: "The model server of bench", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ServeModel(cmd.Context(), c.Stdin, c.Stdout)
		},
	})
	cmd.AddCommand(&cobra.Command{
		Use: "sdk-calls URL N FILE", Short: "The bare calls of bench", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usage(err)
			}
			return bench.SDKCalls(cmd.Context(), c.Stdin, c.Stdout, args[0], n, args[2])
		},
	})
	return cmd
}

func (c *cli) bench(ctx context.Context, quick bool, only []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	report, err := bench.Run(ctx, bench.Options{
		Program: self, Env: os.Environ(), Quick: quick, Only: only,
		ModelServer: []string{"bench", "model-server"}, SDKCalls: []string{"bench", "sdk-calls"}, Progress: c.Stderr,
	})
	if err != nil {
		return mendable(err)
	}
	return c.print(report, report.Text)
}

func (c *cli) benchMemoryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "memory", Short: "Measure how well memory is found, beside plain full text search", Args: no,
		Long: "Asks questions in everyday words about notes that use other words, and counts how often the\n" +
			"answer comes first and among the first five, beside plain FTS5. It uses notes and an index of\n" +
			"its own; with memory.embedding in the configuration also that model.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, cfg, err := c.locate()
			if err != nil {
				return err
			}
			if err := s.addMemory(c, cfg); err != nil {
				return usage(err)
			}
			var o recall.Options
			if s.embedder != nil {
				o.Embedder = s.embedder
			}
			report, err := recall.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.print(report, report.Text)
		},
	}
}
