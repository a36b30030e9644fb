package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Show or change the token that the gateway's clients bring",
		Long: "The token lets a client in. It is in the file token of GOCLAW_HOME, unless GOCLAW_TOKEN or\n" +
			"gateway.token of the configuration names another, which is then changed there.",
		Example: "goclaw token rotate",
	}
	group(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Print the token", Args: no,
			RunE: func(*cobra.Command, []string) error { return c.showToken() },
		},
		&cobra.Command{
			Use: "path", Short: "Print the token's file", Args: no,
			RunE: func(*cobra.Command, []string) error { return c.tokenPath() },
		},
		&cobra.Command{
			Use: "rotate", Short: "Make another token; the old one, and all browsers' sessions, end at once", Args: no,
			RunE: func(cmd *cobra.Command, _ []string) error { return c.rotateToken(cmd.Context()) },
		},
	)
	return cmd
}

// presentToken is the token as clients have it now; "" if none was made.
func (s settings) presentToken() (string, error) {
	if s.token != "" {
		return s.token, nil
	}
	return s.home.readToken()
}

// namedToken says who decides about the token.
func namedToken(from string) error {
	return fmt.Errorf("the token is the one of %s; change it there and start the gateway again", from)
}

func (c *cli) showToken() error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	token, err := s.presentToken()
	if err != nil {
		return err
	}
	if token == "" {
		return fmt.Errorf("there is no token yet in %s; the first start of goclaw gateway or chat makes it", s.home.path("token"))
	}
	return c.print(map[string]string{"token": token}, func() string { return token })
}

func (c *cli) tokenPath() error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	if s.token != "" {
		return namedToken(s.tokenFrom)
	}
	path := s.home.path("token")
	return c.print(map[string]string{"path": path}, func() string { return path })
}

func (c *cli) rotateToken(ctx context.Context) error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	if s.token != "" {
		return namedToken(s.tokenFrom)
	}
	if err := s.home.prepare(); err != nil {
		return err
	}
	for began := time.Now(); ; {
		done, err := c.tryRotate(ctx, s)
		switch {
		case err != nil:
			return err
		case done:
			path := s.home.path("token")
			return c.print(map[string]string{"path": path}, func() string {
				return "The token in " + path + " is a new one. The old one and the sessions of all browsers have ended."
			})
		case time.Since(began) > unreachable:
			return fmt.Errorf("another goclaw process uses %s; try again when it has finished", s.home)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// tryRotate changes the token: the gateway does, if one runs; else, if nobody
// holds the home, this process.
func (c *cli) tryRotate(ctx context.Context, s settings) (done bool, err error) {
	lock, err := s.home.lock()
	if err == nil {
		return true, errors.Join(s.home.writeToken(newToken()), lock.Close())
	}
	if !errors.Is(err, errHeld) {
		return false, err
	}
	l, listening := s.home.findListener()
	if !listening {
		return false, nil
	}
	remote, err := c.attach(ctx, s, l)
	if err != nil {
		return false, err
	}
	return true, remote.RotateToken(ctx)
}

// minToken is how long a token of a person's own must be where others can try.
const minToken = 20

// checkReach refuses a token that could be guessed where others can guess, and
// tells of one elsewhere.
func (s *settings) checkReach(addr string) error {
	if s.token == "" || len(s.token) >= minToken {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		s.notes = append(s.notes, fmt.Sprintf("the token of %s has fewer than %d characters: other users of this machine may guess it", s.tokenFrom, minToken))
		return nil
	}
	return usagef("the token of %s has fewer than %d characters, and %s can be reached from elsewhere; take a longer one, or leave it to goclaw to make one", s.tokenFrom, minToken, addr)
}
