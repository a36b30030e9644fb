package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/config"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/sqlite"
)

func (c *cli) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Move what GoClaw keeps"}
	group(cmd)
	cmd.AddCommand(c.migrateStoreCommand())
	return cmd
}

func (c *cli) migrateStoreCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "store --to URL", Short: "Copy the home's database into an empty PostgreSQL database", Args: no,
		Long: "Copies goclaw.db of GOCLAW_HOME (runs, transcripts, artifacts, budgets, all of it) into an\n" +
			"empty PostgreSQL database, in one transaction. No gateway may run meanwhile. The file stays\n" +
			"as it is. From then on set GOCLAW_DATABASE_URL (or database.url) to the same address.",
		Example: "goclaw migrate store --to postgres://goclaw@db.example/goclaw",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usagef("migrate store needs --to postgres://…, the database to fill")
			}
			rows, err := c.migrateStore(cmd.Context(), to)
			if err != nil {
				return err
			}
			return c.print(rows, func() string { return migrated(rows) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "URL of an empty PostgreSQL database")
	return cmd
}

func (c *cli) migrateStore(ctx context.Context, to string) (rows map[string]int64, err error) {
	if err := config.CheckDatabaseURL(to); err != nil {
		return nil, usagef("--to %w", err)
	}
	s, _, err := c.locate()
	if err != nil {
		return nil, err
	}
	file := s.home.path("goclaw.db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("there is no %s to copy; set GOCLAW_HOME to the home that has one", file)
	}
	lock, err := s.home.lock()
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("a goclaw process uses %s; stop it first, so that nothing changes meanwhile", s.home)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	log := c.logger(c.Stderr, slog.LevelWarn)
	from, err := sqlite.Open(ctx, file, sqlite.Options{Logger: log, Migrated: c.tellMigrated})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	into, err := postgres.Open(ctx, to, postgres.Options{ServerTime: true, Logger: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	load, err := into.Load(ctx)
	if err != nil {
		return nil, err
	}
	defer load.Close(ctx)
	err = from.Dump(ctx, func(table string, columns []string, values []any) error {
		return load.Row(ctx, table, columns, values)
	})
	if err != nil {
		return nil, err
	}
	return load.Commit(ctx)
}

// migrated lists the rows that were copied.
func migrated(rows map[string]int64) string {
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "%-10s %d\n", table, rows[table])
	}
	b.WriteString("Copied. Set GOCLAW_DATABASE_URL or database.url to this database from now on; the file is kept.")
	return b.String()
}

// tellMigrated says that the database is a newer one from now on, and where it
// is kept as it was.
func (c *cli) tellMigrated(m sqlite.Migration) {
	fmt.Fprintf(c.Stderr, "goclaw: %s was brought from schema %d to %d; as it was before, it is kept as %s\n", m.Path, m.From, m.To, m.Copy)
}
