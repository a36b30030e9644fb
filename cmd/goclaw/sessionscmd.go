package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/core/turn"
)

func (c *cli) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions", Short: "Look at the sessions", Aliases: []string{"session"},
		Long: "Lists the sessions; show prints one's transcript, compact sums one up.",
	}
	group(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.listSessions(cmd.Context()) }
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the sessions, newest first", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listSessions(cmd.Context()) },
	}, &cobra.Command{
		Use: "show KEY", Short: "Print a session's transcript, whole also where it was summed up for the agent",
		Args: one("KEY", "goclaw sessions lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := goclaw.ParseSessionKey(args[0])
			if err != nil {
				return usage(err)
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				logs, err := l.History(ctx, key)
				if err != nil {
					return err
				}
				msgs := turn.View{}.Transcript(logs)
				if len(msgs) == 0 {
					return fmt.Errorf("session %s has no transcript; goclaw sessions lists those there are", key)
				}
				return c.print(msgs, func() string { return transcriptText(msgs) })
			})
		},
	}, c.sessionsCompactCommand())
	return cmd
}

func (c *cli) sessionsCompactCommand() *cobra.Command {
	var instructions string
	cmd := &cobra.Command{
		Use: "compact KEY", Short: "Sum up a session, so that less is sent with each turn",
		Long: "Sums up what was said in a session, as /compact does in the chat. It waits for the turn that\n" +
			"is under way. The whole transcript is kept.",
		Args: one("KEY", "goclaw sessions lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := goclaw.ParseSessionKey(args[0])
			if err != nil {
				return usage(err)
			}
			return c.runMessage(cmd.Context(), key, strings.TrimSpace("/compact "+instructions), false)
		},
	}
	cmd.Flags().StringVar(&instructions, "instructions", "", "TEXT that says what matters")
	return cmd
}

func (c *cli) listSessions(ctx context.Context) error {
	return c.reading(ctx, func(ctx context.Context, l link) error {
		all, err := l.Sessions(ctx)
		if err != nil {
			return err
		}
		return c.print(all, func() string { return sessionTable(all) })
	})
}

func sessionTable(all []goclaw.Session) string {
	if len(all) == 0 {
		return "No sessions yet."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-19s %6s  %s\n", "LAST TURN", "TURNS", "SESSION")
	for _, s := range all {
		note := ""
		switch {
		case s.DeletedAt != 0:
			note = "  (transcript removed)"
		case s.ArchivedAt != 0:
			note = "  (archived)"
		}
		fmt.Fprintf(&b, "%-19s %6d  %s%s\n", s.UpdatedAt.Time().Local().Format("2006-01-02 15:04:05"), s.Turns, s.Key, note)
	}
	return b.String()
}

func transcriptText(msgs []goclaw.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p.Kind {
			case goclaw.PartText:
				fmt.Fprintf(&b, "%s: %s\n\n", m.Role, strings.TrimSpace(p.Text))
			case goclaw.PartToolCall:
				fmt.Fprintf(&b, "  > %s %s\n", p.Call.Name, p.Call.Arguments)
			case goclaw.PartToolResult:
				fmt.Fprintf(&b, "  < %s\n\n", strings.TrimSpace(p.Result.Content))
			}
		}
	}
	return b.String()
}
