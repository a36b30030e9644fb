package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/trust"
)

// trustChange is what `goclaw trust DIR --json` prints.
type trustChange struct {
	Workspace string `json:"workspace"`
	Trusted   bool   `json:"trusted"`
}

func (c *cli) trustCommand() *cobra.Command {
	var list bool
	var revoke string
	cmd := &cobra.Command{
		Use: "trust [DIR]", Short: "Trust a workspace: use the skills and definitions that come with it",
		Long: "Skills and definitions that lie in a workspace are listed, but not used, until you trust\n" +
			"that workspace. Without DIR it is the current folder. Look at them first: goclaw skills list.\n" +
			"Workspaces inside GOCLAW_HOME, and those that GoClaw made from nothing, are trusted.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch revoking := cmd.Flags().Changed("revoke"); {
			case len(args) > 1:
				return usagef("trust takes one DIR, but got %q as well; %s", args[1], seeHelp(cmd))
			case list && (revoking || len(args) > 0), revoking && len(args) > 0:
				return usagef("give either a DIR, --list or --revoke DIR; %s", seeHelp(cmd))
			case revoking:
				return c.revokeTrust(revoke)
			case list:
				return c.listTrust()
			case len(args) == 0:
				return c.addTrust(".")
			}
			return c.addTrust(args[0])
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the trusted workspaces")
	cmd.Flags().StringVar(&revoke, "revoke", "", "trust the workspace DIR no longer")
	return cmd
}

func (c *cli) addTrust(dir string) error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	if err := s.home.prepare(); err != nil {
		return err
	}
	if s.trust.Inherent(dir) {
		return c.print(trustChange{dir, true}, func() string { return dir + " lies inside GOCLAW_HOME and needs no word from you." })
	}
	real, err := s.trust.Trust(dir, time.Now())
	if err != nil {
		return err
	}
	return c.print(trustChange{real, true}, func() string { return "Trusted: " + real })
}

func (c *cli) revokeTrust(dir string) error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	found, err := s.trust.Revoke(dir)
	switch {
	case err != nil:
		return err
	case !found && s.trust.Inherent(dir):
		return fmt.Errorf("%s lies inside GOCLAW_HOME, where all workspaces are trusted; move it elsewhere", dir)
	case !found:
		return fmt.Errorf("%s is not trusted; goclaw trust --list shows what is", dir)
	}
	return c.print(trustChange{dir, false}, func() string { return "No longer trusted: " + dir })
}

func (c *cli) listTrust() error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	entries, err := s.trust.List()
	if err != nil {
		return err
	}
	out := struct {
		Trusted []trust.Entry `json:"trusted"`
	}{append([]trust.Entry{}, entries...)}
	return c.print(out, func() string {
		if len(entries) == 0 {
			return "No workspace is trusted besides those inside GOCLAW_HOME."
		}
		var b strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&b, "%s  since %s\n", e.Workspace, e.Since.Time().Local().Format("2006-01-02 15:04"))
		}
		return b.String()
	})
}
