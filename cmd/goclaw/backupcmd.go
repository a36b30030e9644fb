package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/backup"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/secret"
	"goclaw/internal/edge/store/sqlite"
)

func (c *cli) backupCommand() *cobra.Command {
	var outside, secrets bool
	cmd := &cobra.Command{
		Use: "backup [FILE]", Short: "Write all that GoClaw keeps into one archive",
		Long: "Writes a zip file with the database (a consistent copy, also while a gateway runs), goclaw.json,\n" +
			"definitions, skills, the list of trusted workspaces, sealed secrets, and the workspaces inside of\n" +
			"GOCLAW_HOME. It says what is not in it. Without FILE it is goclaw-backup-DATE-TIME.zip in the\n" +
			"current folder. Secrets are not in it in clear, unless you ask for it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("backup takes one FILE, but got %q as well; %s", args[1], seeHelp(cmd))
			}
			file := "goclaw-backup-" + time.Now().Format("20060102-150405") + ".zip"
			if len(args) > 0 {
				file = args[0]
			}
			r, err := c.backup(cmd.Context(), file, outside, secrets)
			if err != nil {
				return err
			}
			return c.print(r, func() string { return backedUp(r) })
		},
	}
	cmd.Flags().BoolVar(&outside, "workspaces", false, "also workspaces outside of GOCLAW_HOME")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "also secrets in clear: the gateway's token, secrets.key, keys in goclaw.json")
	return cmd
}

func (c *cli) backup(ctx context.Context, file string, outside, secrets bool) (backup.Report, error) {
	s, cfg, err := c.locate()
	if err != nil {
		return backup.Report{}, err
	}
	if _, err := os.Stat(string(s.home)); errors.Is(err, fs.ErrNotExist) {
		return backup.Report{}, fmt.Errorf("there is no %s yet, so that there is nothing to back up", s.home)
	}
	if file, err = filepath.Abs(file); err != nil {
		return backup.Report{}, err
	}
	source := backup.Source{
		Home: string(s.home), Version: version, Now: time.Now(), Outside: outside, Secrets: secrets,
		Copy: func(ctx context.Context, to string) (int, error) {
			return sqlite.Snapshot(ctx, s.home.path("goclaw.db"), to)
		},
	}
	if _, err := os.Stat(s.home.path("goclaw.db")); s.shared() {
		source.Database = "postgres"
	} else if err == nil {
		source.Database = "sqlite"
	}
	if err := c.keepConfig(s, &source); err != nil {
		return backup.Report{}, usage(err)
	}
	for _, a := range cfg.AllAgents() {
		dir, err := c.workspaceOf(s.home, a)
		if err != nil {
			return backup.Report{}, err
		}
		source.Workspaces = append(source.Workspaces, backup.Workspace{Agent: a.ID, Path: dir})
	}
	return backup.Write(ctx, file, source)
}

// keepConfig adds the configuration file, if it lies in the home.
func (c *cli) keepConfig(s settings, to *backup.Source) (err error) {
	own := config.FileIn(string(s.home))
	if c.config != "" {
		given, err := filepath.Abs(c.config)
		if err != nil {
			return err
		}
		if given != own {
			to.Left = append(to.Left, backup.Left{Path: given, Why: "this configuration lies outside of GOCLAW_HOME"})
			return nil
		}
	}
	data, keys, err := config.Withhold(own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && to.Secrets {
		data, err = os.ReadFile(own)
		keys = nil
	}
	to.Config, to.Withheld = data, keys
	return err
}

// backedUp says what is in an archive, and what is not.
func backedUp(r backup.Report) string {
	var b strings.Builder
	files := 0
	for _, e := range r.Entries {
		if e.SHA256 != "" {
			files++
		}
	}
	fmt.Fprintf(&b, "%s: %d files, %s\n", r.File, files, sizeOf(r.Size))
	if r.Database == "postgres" {
		b.WriteString("The record is kept in PostgreSQL and is not in it. pg_dump keeps that: pg_dump --format=custom --file=goclaw.dump URL\n")
	}
	if r.Secrets {
		b.WriteString("It holds secrets in clear: keep it as you keep those.\n")
	}
	if len(r.Withheld) > 0 {
		fmt.Fprintf(&b, "Taken out of goclaw.json, to be filled in again after a restore (--secrets keeps them): %s\n", strings.Join(r.Withheld, ", "))
	}
	if len(r.Left) > 0 {
		b.WriteString("Not in it:\n")
	}
	const most = 20
	for i, l := range r.Left {
		if i == most {
			fmt.Fprintf(&b, "  and %d more; --json lists them\n", len(r.Left)-most)
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", l.Path, l.Why)
	}
	return b.String()
}

func sizeOf(bytes int64) string {
	if bytes < 10_000 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	if bytes < 10_000_000 {
		return fmt.Sprintf("%d kB", bytes/1000)
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}

func (c *cli) restoreCommand() *cobra.Command {
	var t backup.Target
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make GOCLAW_HOME of an archive that goclaw backup wrote", Args: one("FILE", "goclaw backup writes one"),
		Long: "Unpacks and checks the whole archive beside GOCLAW_HOME before anything is touched. GOCLAW_HOME\n" +
			"must be empty or not there; with --force, what is there is moved aside, and you are told where.\n" +
			"No gateway of GOCLAW_HOME may run. Workspaces from outside of GOCLAW_HOME are put back to where\n" +
			"they were only with --workspaces, and only where nothing is.",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := c.restore(cmd.Context(), args[0], t)
			if err != nil {
				return err
			}
			return c.print(r, func() string { return restored(r) + c.closedSecrets(home(r.Home)) })
		},
	}
	cmd.Flags().BoolVar(&t.Force, "force", false, "move aside what is in GOCLAW_HOME")
	cmd.Flags().BoolVar(&t.Outside, "workspaces", false, "also put back workspaces from outside of GOCLAW_HOME")
	return cmd
}

func (c *cli) restore(ctx context.Context, file string, t backup.Target) (_ backup.Restored, err error) {
	// The configuration that is there does not matter, and may be broken.
	dir, err := config.HomeDir(c.Getenv)
	if err != nil {
		return backup.Restored{}, usage(err)
	}
	t.Home, t.Now, t.CheckDatabase = dir, time.Now(), sqlite.Check
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		lock, failed := home(dir).lock()
		if errors.Is(failed, errHeld) {
			return backup.Restored{}, fmt.Errorf("a goclaw process uses %s; stop the gateway first, then restore", dir)
		}
		if failed != nil {
			return backup.Restored{}, failed
		}
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	return backup.Restore(ctx, file, t)
}

// closedSecrets says which secrets of a restored home can't be read as it is.
func (c *cli) closedSecrets(h home) string {
	var b strings.Builder
	_, key := os.Stat(h.path("secrets.key"))
	if _, err := os.Stat(h.path("secrets.age")); err == nil && key != nil {
		b.WriteString("secrets.age is opened by its passphrase, or by its secrets.key, which is not in the archive: put the one that you kept beside it. " +
			"If it is lost, remove secrets.age and secrets.json, and enter the keys again: goclaw setup\n")
	}
	kept, err := c.secretStore(h).List()
	if err != nil {
		return b.String() // whoever needs one is told what is wrong
	}
	for _, s := range kept {
		if s.Place == secret.Keyring {
			fmt.Fprintf(&b, "The secret %q was in the system's keyring; on another machine enter it again: goclaw secrets set %s\n", s.Name, s.Name)
		}
	}
	return b.String()
}

// restored says what is there now, and what remains to be done.
func restored(r backup.Restored) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Restored %d files into %s, as they were on %s.\n", r.Files, r.Home, r.CreatedAt.Local().Format("2006-01-02 15:04"))
	if r.Aside != "" {
		fmt.Fprintf(&b, "What was there before is in %s.\n", r.Aside)
	}
	for _, w := range r.Workspaces {
		fmt.Fprintf(&b, "The workspace of agent %s is in %s.\n", w.Agent, w.Path)
	}
	for _, w := range r.Unrestored {
		fmt.Fprintf(&b, "The workspace of agent %s is in the archive too, but was not put back to %s; --workspaces does.\n", w.Agent, w.Path)
	}
	if len(r.Withheld) > 0 {
		fmt.Fprintf(&b, "Fill in again what goclaw.json lacks: %s\n", strings.Join(r.Withheld, ", "))
	}
	if r.Database == "postgres" {
		b.WriteString("The record was kept in PostgreSQL and is not in the archive; pg_restore brings it back from what pg_dump has kept.\n")
	}
	return b.String()
}
