package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/edge/client"
)

func (c *cli) pageCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "page", Short: "Print a link that opens the web page, signed in", Args: no,
		Long: "Prints a link to the web page of the running gateway. Whoever opens it is signed in, so it\n" +
			"works once and for two minutes. The browser stays signed in for 30 days, or until\n" +
			"goclaw token rotate. It starts no gateway.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.running(cmd.Context())
			if err != nil {
				return err
			}
			link, err := l.LoginLink(cmd.Context())
			if err != nil {
				return err
			}
			if show {
				return browse(cmd.Context(), link.URL)
			}
			return c.print(link, func() string { return link.URL })
		},
	}
	cmd.Flags().BoolVar(&show, "open", false, "open it in the browser instead")
	return cmd
}

// running finds the gateway that serves this home, and starts none.
func (c *cli) running(ctx context.Context) (link, error) {
	s, _, err := c.locate()
	if err != nil {
		return link{}, err
	}
	if err := s.home.prepare(); err != nil {
		return link{}, err
	}
	lock, err := s.home.lock()
	if err == nil {
		return link{}, errors.Join(errNoneRuns, lock.Close())
	}
	l, listening := s.home.findListener()
	switch {
	case !errors.Is(err, errHeld):
		return link{}, err
	case !listening:
		return link{}, errNoneRuns
	}
	found, err := c.attach(ctx, s, l)
	if errors.Is(err, client.ErrNoGateway) {
		return link{}, errNoneRuns
	}
	return found, err
}

var errNoneRuns = errors.New("no gateway runs, so there is no page; start one with: goclaw gateway, or goclaw chat")

// browse opens a link in the person's browser. Other users of the machine may
// see its command line, so that they see the code; it works once.
func browse(ctx context.Context, link string) error {
	name, args := "xdg-open", []string{link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	}
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("the browser can't be opened: %s: %w%s; goclaw page prints the link", name, err, said(out))
	}
	return nil
}

// said is the first line of a program's output, to follow an error.
func said(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return ""
	}
	return " (" + line + ")"
}

// pageLink makes a link to the page of the gateway in this process.
func (a *app) pageLink(ctx context.Context) (goclaw.LoginLink, error) {
	link, err := a.client().LoginLink(ctx)
	if err != nil {
		return link, err
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		return link, err
	}
	u.Host = a.pageHost()
	link.URL = u.String()
	return link, nil
}

// pageHost is where a browser on this machine finds the page.
func (a *app) pageHost() string {
	host := strings.TrimPrefix(a.url, "http://")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return host
}

// tellPage says how a browser gets in: on a terminal by a link, elsewhere in
// the log, where no link belongs. Scripts read nothing but the ready line.
func (c *cli) tellPage(ctx context.Context, a *app) error {
	if !isTerminal(c.Stdout) {
		a.log.Info("the web page is served; goclaw page prints a link that signs a browser in", "url", "http://"+a.pageHost())
		return nil
	}
	link, err := a.pageLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "page  %s\n      (works once, for two minutes; goclaw page prints a fresh one)\n", link.URL)
	return nil
}
