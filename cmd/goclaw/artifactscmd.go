package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func (c *cli) artifactsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "artifacts", Short: "Look at what runs left for others, and take it out", Aliases: []string{"artifact"},
		Long: "Lists, prints and exports artifacts: the texts that runs left for one another. A HANDLE is\n" +
			"artifact:RUN/NAME, as list prints it; RUN is a run's id or an unambiguous beginning of it.",
	}
	group(cmd)
	cmd.AddCommand(c.listArtifacts(), c.showArtifact(), c.exportArtifacts())
	return cmd
}

func (c *cli) listArtifacts() *cobra.Command {
	var run string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List artifacts, newest first", Args: no,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				infos, err := l.Artifacts(ctx, goclaw.ArtifactFilter{Run: run, Limit: limit})
				if err != nil {
					return named(err, run)
				}
				return c.print(infos, func() string { return gateway.ArtifactTable(plain(infos)) })
			})
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "only those that the run ID left")
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "list at most N of them")
	return cmd
}

func plain(infos []goclaw.ArtifactInfo) []goclaw.Artifact {
	all := make([]goclaw.Artifact, len(infos))
	for i, a := range infos {
		all[i] = a.Artifact
	}
	return all
}

func (c *cli) showArtifact() *cobra.Command {
	return &cobra.Command{
		Use: "show HANDLE", Short: "Print an artifact's content, byte for byte", ValidArgsFunction: cobra.NoFileCompletions,
		Args: one("HANDLE", "goclaw artifacts list prints them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				infos, err := chosen(ctx, l, args[0], "")
				if err != nil {
					return err
				}
				data, err := l.Artifact(ctx, infos[0].Run, infos[0].Name)
				if err != nil {
					return err
				}
				if !c.json {
					_, err := c.Stdout.Write(data)
					return err
				}
				shown := struct {
					goclaw.ArtifactInfo
					Text   string `json:"text"`
					Base64 string `json:"base64,omitempty"` // of what is no text
				}{ArtifactInfo: infos[0]}
				if shown.Text = string(data); !utf8.Valid(data) {
					shown.Text, shown.Base64 = "", base64.StdEncoding.EncodeToString(data)
				}
				return c.print(shown, nil)
			})
		},
	}
}

// chosen finds the artifact with a handle, or all of a run. There is at least
// one.
func chosen(ctx context.Context, l link, handle, run string) ([]goclaw.ArtifactInfo, error) {
	name := ""
	if handle != "" {
		var err error
		if run, name, err = goclaw.ParseArtifactHandle(handle); err != nil {
			return nil, err
		}
	}
	infos, err := l.Artifacts(ctx, goclaw.ArtifactFilter{Run: run, Name: name})
	switch {
	case err != nil:
		return nil, named(err, run)
	case len(infos) == 0 && name != "":
		return nil, fmt.Errorf("run %s left no %q; goclaw artifacts list --run %s shows what it left", run, name, run)
	case len(infos) == 0:
		return nil, fmt.Errorf("run %s left no artifacts", run)
	}
	return infos, nil
}

func (c *cli) exportArtifacts() *cobra.Command {
	var run string
	var force bool
	cmd := &cobra.Command{
		Use: "export HANDLE DIR | export --run ID DIR", Short: "Write artifacts to files below a folder",
		Long: "Writes an artifact, or all that a run left, to files of the same names below DIR, which is made\n" +
			"if need be. Nothing is written if one of the files exists already, unless --force is given.",
		RunE: func(cmd *cobra.Command, args []string) error {
			want := 2
			if run != "" {
				want = 1
			}
			if len(args) != want || args[want-1] == "" {
				return usagef("artifacts export needs a HANDLE, or --run ID, and then a DIR; %s", seeHelp(cmd))
			}
			handle, dir := "", args[want-1]
			if run == "" {
				handle = args[0]
			}
			return c.reading(cmd.Context(), func(ctx context.Context, l link) error {
				infos, err := chosen(ctx, l, handle, run)
				if err != nil {
					return err
				}
				contents := make([][]byte, len(infos))
				for i, a := range infos {
					if contents[i], err = l.Artifact(ctx, a.Run, a.Name); err != nil {
						return err
					}
				}
				written, err := export(dir, infos, contents, force)
				if err != nil {
					return err
				}
				return c.print(written, func() string { return strings.Join(written, "\n") })
			})
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "all that the run ID left")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that exist")
	return cmd
}

// export writes artifacts below dir, and never outside of it, whatever links
// are there. It returns the files.
func export(dir string, infos []goclaw.ArtifactInfo, contents [][]byte, force bool) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, a := range infos {
		_, err := root.Lstat(filepath.FromSlash(a.Name))
		if err == nil && !force {
			return nil, fmt.Errorf("%s exists already: nothing was written; choose another folder, or replace it with --force", filepath.Join(dir, a.Name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("export %s to %s: %w", a.Handle, dir, err)
		}
	}
	for i, a := range infos {
		if err := replace(root, a.Name, contents[i], force); err != nil {
			return nil, fmt.Errorf("export %s to %s: %w", a.Handle, dir, err)
		}
		written = append(written, filepath.Join(dir, filepath.FromSlash(a.Name)))
	}
	return written, nil
}

// replace writes a file that does not exist; with force what is there, also a
// link, is removed before.
func replace(root *os.Root, name string, data []byte, force bool) error {
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	file := filepath.FromSlash(name)
	if force {
		if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
