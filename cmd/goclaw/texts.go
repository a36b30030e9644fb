package main

import (
	"context"

	"goclaw"
	"goclaw/internal/core/slices"
	"goclaw/internal/edge/tool/slice"
)

// texts reads for the engine what slices name.
type texts struct{ files slice.Reader }

func (t texts) Read(ctx context.Context, workspace string, access goclaw.Access, wants []slices.Want) ([]slices.Found, error) {
	asked := make([]slice.Want, len(wants))
	for i, w := range wants {
		asked[i] = slice.Want{Name: w.Name, File: w.File, Glob: w.Glob, Optional: w.Optional, Lenient: w.Lenient}
	}
	read, err := t.files.Read(ctx, workspace, access, asked)
	if err != nil {
		return nil, err
	}
	found := make([]slices.Found, len(read))
	for i, f := range read {
		found[i] = slices.Found(f)
	}
	return found, nil
}
