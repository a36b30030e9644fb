package gateway

import (
	"context"
	"fmt"
	"strings"

	"goclaw"
)

// Artifacts lists what runs left, newest first. A run is named by its id or the
// beginning of it.
func (g *Gateway) Artifacts(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error) {
	if f.Run != "" {
		run, err := g.o.Record.Run(ctx, f.Run)
		if err != nil {
			return nil, err
		}
		f.Run = run.ID
	}
	return g.o.Record.ArtifactsOf(ctx, f)
}

// Artifact returns one artifact of a run with its content.
func (g *Gateway) Artifact(ctx context.Context, run, name string) (goclaw.Artifact, []byte, error) {
	found, err := g.Artifacts(ctx, goclaw.ArtifactFilter{Run: run, Name: name, Limit: 1})
	if err == nil && (len(found) == 0 || name == "" || run == "") {
		err = fmt.Errorf("artifact %q of run %s: %w", name, run, goclaw.ErrNotFound)
	}
	if err != nil {
		return goclaw.Artifact{}, nil, err
	}
	data, err := g.o.Record.Blob(ctx, found[0].SHA256)
	return found[0], data, err
}

// ArtifactTable lists artifacts, a line each.
func ArtifactTable(all []goclaw.Artifact) string {
	if len(all) == 0 {
		return "No artifacts."
	}
	width := len("HANDLE")
	for _, a := range all {
		width = max(width, len(a.Handle()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-19s %9s  %-*s  %s", "WRITTEN", "BYTES", width, "HANDLE", "TYPE")
	for _, a := range all {
		fmt.Fprintf(&b, "\n%-19s %9d  %-*s  %s", clock(a.CreatedAt), a.Size, width, oneLine(a.Handle()), oneLine(a.MediaType))
	}
	return b.String()
}
