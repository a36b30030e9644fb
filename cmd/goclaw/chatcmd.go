package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/edge/channel/terminal"
)

func (c *cli) chatCommand() *cobra.Command {
	var agent, session string
	cmd := &cobra.Command{
		Use: "chat", Short: "Talk with your agent in the terminal", Args: no,
		Long: "Talks with your agent in the terminal. Starts a gateway in this process when none runs.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := sessionOf(cmd, agent, session)
			if err != nil {
				return err
			}
			if !isTerminal(c.Stdin) || !isTerminal(c.Stdout) {
				return usage(errors.New("chat needs a terminal; in scripts use: goclaw run MESSAGE"))
			}
			return c.chat(cmd.Context(), key)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "main", "ID of the agent to talk to")
	cmd.Flags().StringVar(&session, "session", "", "KEY of the session (default: the agent's main session)")
	return cmd
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

func (c *cli) chat(ctx context.Context, key goclaw.SessionKey) error {
	logFile, err := c.chatLog()
	if err != nil {
		return err
	}
	defer logFile.Close()
	l, err := c.connect(ctx, toStay, c.logger(logFile, slog.LevelInfo))
	if err != nil {
		return err
	}
	if err := c.showChat(ctx, l, key); err != nil {
		return errors.Join(err, l.close())
	}
	paused := c.underWay(context.WithoutCancel(ctx), l, key)
	if err := l.close(); err != nil {
		return err
	}
	if paused > 0 {
		c.tellPaused(paused, " (goclaw gateway lets them work on)")
	}
	return nil
}

func (c *cli) showChat(ctx context.Context, l link, key goclaw.SessionKey) error {
	var notices []string
	if l.app != nil {
		door, err := bindNear(l.app.settings.addr)
		if err != nil {
			return err
		}
		if _, err := l.app.serve(ctx, door); err != nil {
			return err
		}
		notices = append(notices, l.app.settings.notes...)
		for _, dir := range l.app.laidOut {
			notices = append(notices, "A fresh workspace was laid out in "+dir+"; its files say who the agent is and how it works.")
		}
	}
	notices = append(notices, "The same, and more to see, is in your browser: /page shows the link.")
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	return terminal.Run(ctx, chatBackend{l}, terminal.Options{
		Session: key, Model: status.Model, Demo: status.Demo, Version: version, Notices: notices,
		Input: c.Stdin, Output: c.Stdout,
	})
}

// underWay counts the workers that leaving the chat pauses: one that waits for
// a person does so anyway.
func (c *cli) underWay(ctx context.Context, l link, key goclaw.SessionKey) int {
	if l.app == nil {
		return 0
	}
	runs, err := chatBackend{l}.Workers(ctx, key)
	if err != nil {
		return 0
	}
	return len(slices.DeleteFunc(runs, func(r goclaw.RunInfo) bool { return r.WaitsFor == goclaw.WaitPerson }))
}

// chatLog is where the gateway inside a chat logs: the screen is the chat's.
func (c *cli) chatLog() (io.WriteCloser, error) {
	s, _, err := c.locate()
	if err != nil {
		return nil, err
	}
	if err := s.home.prepare(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.home.path("goclaw.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", s.home.path("goclaw.log"), reason(err))
	}
	return f, nil
}

// chatBackend is the gateway as the chat screen sees it.
type chatBackend struct{ link }

// Receive answers /page itself: a link that signs its holder in is for the
// person at this screen, not for a chat service.
func (b chatBackend) Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	if in.Text != "/page" {
		return b.Client.Receive(ctx, in)
	}
	login := b.LoginLink
	if b.app != nil {
		login = b.app.pageLink
	}
	link, err := login(ctx)
	if err != nil {
		return goclaw.Receipt{}, err
	}
	return goclaw.Receipt{Reply: link.URL + "\n(it works once, for two minutes)"}, nil
}

// Cancel ends a run for the person at the screen.
func (b chatBackend) Cancel(ctx context.Context, id string) error {
	_, err := b.Client.Cancel(ctx, id, "cancelled by the user")
	return err
}

// Workers lists the session's workers under way, oldest first, and below them
// theirs.
func (b chatBackend) Workers(ctx context.Context, key goclaw.SessionKey) ([]goclaw.RunInfo, error) {
	var all []goclaw.RunInfo
	for open := []goclaw.SessionKey{key}; len(open) > 0; open = open[1:] {
		runs, err := b.Placed(ctx, goclaw.RunFilter{Requester: open[0], Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: true})
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(runs) {
			all = append(all, r.Info())
			if r.StartedAt != 0 && r.Depth < r.Profile.MaxSpawnDepth { // it may have workers
				open = append(open, r.Session)
			}
		}
	}
	return all, nil
}
