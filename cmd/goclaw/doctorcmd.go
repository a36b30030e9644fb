package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/tool/exec/sandbox"
	"goclaw/internal/runtime/gateway"
)

// finding is one thing that doctor looked at.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check that this installation can work, and say what to mend", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := c.examine(cmd.Context())
			if err := c.print(found, func() string { return findingText(found) }); err != nil {
				return err
			}
			for _, f := range found {
				if !f.OK {
					return exitError{exitFailed, errors.New("something needs mending (see above)")}
				}
			}
			return nil
		},
	}
}

func (c *cli) examine(ctx context.Context) []finding {
	var found []finding
	add := func(what string, err error, detail string) bool {
		if err != nil {
			detail = err.Error()
		}
		found = append(found, finding{what, err == nil, detail})
		return err == nil
	}
	s, cfg, err := c.locate()
	if err == nil {
		err = c.settle(&s, cfg)
	}
	if !add("configuration", err, s.source) {
		return found
	}
	if !add("state folder", s.home.prepare(), string(s.home)) {
		return found
	}
	if open := s.home.open(); open != "" {
		add("token", errors.New(open), "")
	}
	c.examineDatabase(ctx, s, add)
	add("gateway", nil, gatewayState(s.home))
	model, err := s.models.Resolve("")
	add("model", err, model+modelNote(s))
	for _, k := range s.keys {
		if k.Missing != "" {
			add("key of "+k.Provider, errors.New(k.Missing), "")
			continue
		}
		add("key of "+k.Provider, nil, k.From)
	}
	examineWeb(s, add)
	box, how := sandbox.Detect(ctx)
	if box == nil {
		add("exec sandbox", fmt.Errorf("%s; exec is refused until then", how), "")
	} else {
		add("exec sandbox", nil, box.Name())
	}
	for _, id := range s.agentIDs() {
		dir := s.rules.Agents[id].Workspace
		info, err := os.Stat(dir)
		switch {
		case os.IsNotExist(err):
			add("workspace of "+id, nil, dir+" (made at the first start)")
		case err == nil && !info.IsDir():
			add("workspace of "+id, fmt.Errorf("%s is no folder", dir), "")
		default:
			add("workspace of "+id, err, dir)
		}
	}
	return found
}

func modelNote(s settings) string {
	if s.demo() {
		return " (no key is set: answers come from the built-in demonstration model; goclaw setup sets up a real one)"
	}
	return ""
}

// examineDatabase opens the database as a start would, and tells what in it
// waits for a person.
func (c *cli) examineDatabase(ctx context.Context, s settings, add func(string, error, string) bool) {
	where := s.storeName()
	if !s.shared() {
		where += " " + s.home.path("goclaw.db")
		if _, err := os.Stat(s.home.path("goclaw.db")); os.IsNotExist(err) {
			add("database", nil, where+" (made at the first start)")
			return
		}
	}
	db, _, err := openDatabase(ctx, s, nil, slog.New(slog.DiscardHandler))
	if !add("database", err, where) {
		return
	}
	pause, err := db.Paused(ctx)
	text := "not paused"
	if pause.At != 0 {
		text = gateway.PauseText(pause) + "; goclaw resume goes on"
	}
	add("model calls", err, text)
	parked, err := db.Parked(ctx)
	text = "none parked"
	if len(parked) > 0 {
		text = fmt.Sprintf("%d parked; goclaw subagent list --parked shows them", len(parked))
	}
	add("deliveries", errors.Join(err, db.Close()), text)
}

func gatewayState(h home) string {
	lock, err := h.lock()
	if err == nil {
		_ = lock.Close() // nothing was done under it
		return "not running (chat and run start one in their own process)"
	}
	if l, ok := h.findListener(); ok {
		return fmt.Sprintf("running at %s (process %d)", l.URL, l.PID)
	}
	return "the home is in use by another goclaw process"
}

func findingText(found []finding) string {
	var b strings.Builder
	for _, f := range found {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		detail := strings.ReplaceAll(f.Detail, "\n", "\n"+strings.Repeat(" ", 24))
		fmt.Fprintf(&b, "%s %-18s %s\n", mark, f.What, detail)
	}
	return b.String()
}
