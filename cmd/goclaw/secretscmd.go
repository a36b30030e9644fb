package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/ask"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/secret"
)

// keySource says where a provider's key comes from, or why there is none.
type keySource struct{ Provider, From, Missing string }

// secretStore is the home's store of secrets: one, so that a passphrase is asked
// for once.
func (c *cli) secretStore(h home) *secret.Store {
	if c.vault != nil {
		return c.vault
	}
	c.vault = secret.New(secret.Options{
		Dir: string(h), Ring: c.Ring, Passphrase: c.passphrase,
		Lock: func(ctx context.Context) (func() error, error) { return h.lockSecrets(ctx) },
	})
	return c.vault
}

// lookup is how the configuration finds the secrets that it names. From then on
// no log and no error shows them.
func (c *cli) lookup(store *secret.Store) config.Secrets {
	return func(name string) (value, place string, err error) {
		value, in, err := store.Get(context.Background(), name) // a keyring is waited for with a limit of its own
		c.hide.Add(value)
		return value, in.String(), err
	}
}

const passphraseVar = "GOCLAW_PASSPHRASE"

// passphrase is that of the age file. A fresh file has one only if the
// environment gives it: nobody is asked to invent one in passing.
func (c *cli) passphrase(ctx context.Context, fresh bool) (phrase string, err error) {
	if given := c.Getenv(passphraseVar); given != "" || fresh || !isTerminal(c.Stdin) || !isTerminal(c.Stderr) {
		return given, nil
	}
	a, err := ask.New(c.Stdin, c.Stderr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.Hidden(ctx, "Passphrase of secrets.age")
}

// lockSecrets keeps two commands from changing the secrets at once.
func (h home) lockSecrets(ctx context.Context) (release func() error, err error) {
	const patience, pause = 60 * time.Second, 20 * time.Millisecond
	path := h.path("secrets.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, reason(err))
	}
	for began := time.Now(); ; {
		err := tryLock(f)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, errHeld) || time.Since(began) > patience {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(pause):
		}
	}
}

func (c *cli) secretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secrets", Short: "Keep keys in the system's keyring or an age file", Aliases: []string{"secret"},
		Long: "Keeps secrets by name: in the system's keyring or, where there is none, in the age file\n" +
			"secrets.age of GOCLAW_HOME. The configuration names them: {\"apiKey\": {\"secret\": \"NAME\"}}.\n" +
			"A secret is read from standard input, or typed unseen; it is never an argument.",
	}
	group(cmd)
	var in string
	set := &cobra.Command{
		Use: "set NAME", Short: "Keep a secret, or give it a new value",
		Example: "goclaw secrets set anthropic\npass show anthropic | goclaw secrets set anthropic",
		Args:    one("NAME", "such as the provider's: goclaw secrets set anthropic"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.setSecret(cmd.Context(), args[0], in) },
	}
	set.Flags().StringVar(&in, "in", "", "where to keep it: keyring or file (default: the keyring if there is one)")
	cmd.AddCommand(set, &cobra.Command{
		Use: "list", Short: "List the secrets: where each is kept and what uses it", Args: no,
		RunE: func(*cobra.Command, []string) error { return c.listSecrets() },
	}, &cobra.Command{
		Use: "rm NAME", Short: "Forget a secret", Args: one("NAME", "goclaw secrets list shows those there are"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.removeSecret(cmd.Context(), args[0]) },
	})
	return cmd
}

// homeOnly finds the home without reading the configuration, which may need a
// secret that is about to be set.
func (c *cli) homeOnly() (home, error) {
	dir, err := config.HomeDir(c.Getenv)
	if err != nil {
		return "", usage(err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", usagef("state folder %s is a file; set GOCLAW_HOME to a folder", dir)
	}
	return home(dir), nil
}

// secretChange is what set and rm print with --json.
type secretChange struct {
	Name string `json:"name"`
	In   string `json:"in,omitempty"`
}

func (c *cli) setSecret(ctx context.Context, name, in string) error {
	place, err := placeOf(in)
	if err == nil {
		err = secret.CheckName(name)
	}
	if err != nil {
		return usage(err)
	}
	h, err := c.homeOnly()
	if err != nil {
		return err
	}
	if err := h.prepare(); err != nil {
		return err
	}
	value, err := c.readSecret(ctx, "Secret "+name)
	if err != nil {
		return err
	}
	if err := secret.CheckValue(value); err != nil {
		return usage(err)
	}
	kept, err := c.secretStore(h).Set(ctx, name, value, place)
	if err != nil {
		return ringHint(err, "goclaw secrets set --in file "+name)
	}
	return c.print(secretChange{name, string(kept)}, func() string {
		return fmt.Sprintf("The secret %q is kept in %s.%s", name, kept, ringNote(place, kept))
	})
}

func placeOf(in string) (secret.Place, error) {
	switch p := secret.Place(in); p {
	case secret.Auto, secret.Keyring, secret.File:
		return p, nil
	}
	return "", fmt.Errorf("--in %q: write keyring or file", in)
}

// ringHint offers the file to who has a keyring that fails.
func ringHint(err error, command string) error {
	var failed *secret.RingError
	if errors.As(err, &failed) || errors.Is(err, secret.ErrNoRing) {
		return fmt.Errorf("%w; unlock it and try again, or keep the secret in the age file: %s", err, command)
	}
	return err
}

// ringNote says that the file was taken where a keyring was looked for.
func ringNote(asked, kept secret.Place) string {
	if asked == secret.Auto && kept == secret.File {
		return " (There is no keyring on this machine; docs/security.md says what the file protects against.)"
	}
	return ""
}

// readSecret reads a secret unseen at a terminal, else all of standard input.
func (c *cli) readSecret(ctx context.Context, question string) (value string, err error) {
	if !isTerminal(c.Stdin) {
		const enough = 64 << 10
		text, err := io.ReadAll(io.LimitReader(c.Stdin, enough))
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	a, err := ask.New(c.Stdin, c.Stderr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.Hidden(ctx, question)
}

// secretView is a secret as list --json prints it.
type secretView struct {
	Name   string   `json:"name"`
	In     string   `json:"in"` // keyring or file; "" if there is none of that name
	UsedBy []string `json:"usedBy"`
}

func (c *cli) listSecrets() error {
	h, err := c.homeOnly()
	if err != nil {
		return err
	}
	list, err := c.secretStore(h).List()
	if err != nil {
		return err
	}
	// A broken configuration is no reason to hide the secrets.
	cfg, cfgErr := c.load(&settings{home: h})
	uses := cfg.SecretNames()
	views := []secretView{}
	for _, e := range list {
		views = append(views, secretView{e.Name, string(e.Place), append([]string{}, uses[e.Name]...)})
		delete(uses, e.Name)
	}
	for name, by := range uses {
		views = append(views, secretView{name, "", by})
	}
	if cfgErr != nil {
		fmt.Fprintf(c.Stderr, "goclaw: warning: what uses them is not known: %v\n", cfgErr)
	}
	return c.print(views, func() string { return secretTable(views) })
}

func secretTable(views []secretView) string {
	if len(views) == 0 {
		return "No secrets are kept. goclaw secrets set NAME keeps one."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s  %-8s  %s\n", "NAME", "IN", "USED BY")
	for _, v := range views {
		in, by := v.In, strings.Join(v.UsedBy, ", ")
		if in == "" {
			in = "missing"
		}
		if by == "" {
			by = "nothing in the configuration"
		}
		fmt.Fprintf(&b, "%-20s  %-8s  %s\n", v.Name, in, by)
	}
	return b.String()
}

func (c *cli) removeSecret(ctx context.Context, name string) error {
	h, err := c.homeOnly()
	if err != nil {
		return err
	}
	if err := h.prepare(); err != nil {
		return err
	}
	err = c.secretStore(h).Remove(ctx, name)
	if errors.Is(err, secret.ErrUnknown) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	return c.print(secretChange{Name: name}, func() string { return fmt.Sprintf("The secret %q is forgotten.", name) })
}
