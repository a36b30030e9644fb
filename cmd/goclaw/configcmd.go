package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/config"
)

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show, change and check the configuration",
		Long: "Shows, changes and checks the configuration file. A KEY is written as agents.defaults.model\n" +
			"or tools.deny[0]. Comments in the file are kept, and nothing is written that would not load.\n" +
			"A running gateway takes changes with its next start.",
		Example: "goclaw config get agents.defaults.model\ngoclaw config set agents.defaults.subagents.maxConcurrent 4",
	}
	group(cmd)
	unset := &cobra.Command{
		Use: "unset KEY", Short: "Take a key out of the file, so that its default holds",
		Args: one("KEY", "such as agents.defaults.model"),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.changeConfig(config.Change{Key: args[0]})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "get [KEY]", Short: "Print what holds for a key; everything without KEY",
		Long: "Prints the value of KEY as JSON: the file's, else the default. Secrets are hidden.\n" +
			"The exit code is 1 if neither gives one.",
		Args: upTo(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.getConfig(append(args, "")[0]) },
	}, &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a key in the file",
		Long: "VALUE is JSON, or the bare text where a string belongs. A secret is no VALUE: keep it by\n" +
			"goclaw secrets set NAME and set the key to {\"secret\": \"NAME\"}.",
		Example: "goclaw config set agents.defaults.model openai/gpt-5.5\ngoclaw config set tools.deny '[\"exec\"]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("config set needs a KEY and a VALUE; %s", seeHelp(cmd))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			value, err := config.Value(args[0], args[1])
			if err != nil {
				return usage(err)
			}
			return c.changeConfig(config.Change{Key: args[0], Value: value})
		},
	}, unset, &cobra.Command{
		Use: "check", Short: "Say what is wrong with the configuration", Args: no,
		RunE: func(*cobra.Command, []string) error { return c.checkConfig() },
	}, &cobra.Command{
		Use: "path", Short: "Print where the configuration file is, or would be", Args: no,
		RunE: func(*cobra.Command, []string) error {
			h, err := c.homeOnly()
			if err != nil {
				return err
			}
			file := c.configFile(h)
			_, err = os.Stat(file)
			return c.print(map[string]any{"path": file, "exists": err == nil}, func() string { return file })
		},
	}, &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration file", Args: no,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Stdout.Write(config.Schema())
			return err
		},
	})
	return cmd
}

// upTo refuses more than n arguments.
func upTo(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes at most %d argument, but got %q as well; %s", nameOf(cmd), n, args[n], seeHelp(cmd))
		}
		return nil
	}
}

func (c *cli) configFile(h home) string {
	if c.config != "" {
		return c.config
	}
	return config.FileIn(string(h))
}

func (c *cli) getConfig(key string) error {
	h, err := c.homeOnly()
	if err != nil {
		return err
	}
	cfg, err := c.load(&settings{home: h})
	if err != nil {
		return usage(err)
	}
	value, err := cfg.Show(key)
	if errors.Is(err, config.ErrUnset) {
		return err
	}
	if err != nil {
		return usage(err)
	}
	return c.print(value, func() string {
		if text, ok := value.(string); ok {
			return text
		}
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err.Error()
		}
		return string(text)
	})
}

func (c *cli) changeConfig(change config.Change) error {
	h, err := c.homeOnly()
	if err != nil {
		return err
	}
	if err := h.prepare(); err != nil {
		return err
	}
	file := c.configFile(h)
	if err := editConfig(file, change); err != nil {
		return usage(err)
	}
	shown := map[string]any{"path": file, "key": change.Key}
	return c.print(shown, func() string {
		if _, running := h.findListener(); running {
			return file + " is changed; the running gateway takes it with its next start."
		}
		return file + " is changed."
	})
}

// editConfig changes a configuration file in one step, or not at all.
func editConfig(file string, changes ...config.Change) error {
	text, err := readConfig(file)
	if err != nil {
		return err
	}
	now, err := config.Edit(file, text, changes...)
	if err != nil {
		return err
	}
	return writeConfig(file, now)
}

// readConfig returns nothing for a file that is not there.
func readConfig(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config %s: %w", file, reason(err))
	}
	return text, nil
}

// writeConfig puts the file in its place in one step, with the mode that it
// has; where it is a link, what that leads to.
func writeConfig(file string, text []byte) error {
	mode := fs.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".goclaw-*.json")
	if err != nil {
		return fmt.Errorf("config %s: %w", file, reason(err))
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("config %s: %w", file, errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

func (c *cli) checkConfig() error {
	s, cfg, err := c.locate()
	if err == nil {
		err = c.settle(&s, cfg)
	}
	if err != nil {
		return err
	}
	return c.print(map[string]any{"ok": true, "source": s.source, "notes": append([]string{}, s.notes...)}, func() string {
		return "ok  " + s.source
	})
}
