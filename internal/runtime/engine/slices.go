package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/slices"
	"goclaw/internal/core/turn"
	"goclaw/internal/core/typed"
)

// cut reads and fits the slices of a definition for the worker that is to be
// spawned. The error is for the requester: nothing was spent yet.
func (e *Engine) cut(ctx context.Context, in goclaw.Invocation, spec definition.Spec, worker goclaw.Profile) ([]goclaw.SliceText, error) {
	if len(spec.Typed.Context) == 0 {
		return nil, nil
	}
	if e.o.Texts == nil {
		return nil, fmt.Errorf("definition %s: slices can't be read here", spec.Name)
	}
	session := goclaw.SubagentKey(worker.Agent, "new")
	return slices.Assemble(spec.Path, spec.Typed.Context, spec.Input, sliceReader{ctx, e, in, worker, worker.Access(session, "")})
}

// sliceReader reads files as the worker may see them, and artifacts as its
// requester may.
type sliceReader struct {
	ctx    context.Context
	e      *Engine
	in     goclaw.Invocation
	worker goclaw.Profile
	access goclaw.Access
}

func (r sliceReader) Files(wants []slices.Want) ([]slices.Found, error) {
	return r.e.o.Texts.Read(r.ctx, r.worker.Workspace, r.access, wants)
}

func (r sliceReader) Artifact(handle string) (slices.Found, error) {
	store := r.e.o.Store
	f := goclaw.ArtifactFilter{Session: r.in.Session, Name: handle, Limit: 1}
	if goclaw.IsArtifactHandle(handle) {
		run, name, err := goclaw.ParseArtifactHandle(handle)
		if err != nil {
			return slices.Found{}, err
		}
		owner, err := store.Run(r.ctx, run)
		if err != nil {
			return slices.Found{}, err
		}
		viewer := r.in.Profile.Access(r.in.Session, r.in.Fence.Run)
		viewer.Root = r.in.Root
		if ok, why := viewer.MaySee(goclaw.Thing{Artifact: &owner}); !ok {
			return slices.Found{}, errors.New(why)
		}
		f = goclaw.ArtifactFilter{Run: owner.ID, Name: name, Limit: 1}
	}
	found, err := store.ArtifactsOf(r.ctx, f)
	if err != nil {
		return slices.Found{}, err
	}
	if len(found) == 0 {
		return slices.Found{}, fmt.Errorf("artifact %s: %w", handle, goclaw.ErrNotFound)
	}
	data, err := store.Blob(r.ctx, found[0].SHA256)
	return slices.Found{Source: found[0].Handle(), Text: string(data), Size: len(data)}, err
}

// missing names the artifacts that the definition declares and that are not
// there: neither as files of the workspace nor as artifacts of the run.
func (j *job) missing() ([]string, error) {
	var gone []string
	for _, a := range j.spec.Typed.Artifacts {
		pattern, err := typed.FillGlob(a.Path, j.spec.Input)
		if err != nil {
			return nil, err
		}
		n, err := j.count(pattern)
		if err != nil {
			return nil, err
		}
		if n < max(a.Min, 1) {
			gone = append(gone, fmt.Sprintf("%s (%d of %d)", pattern, n, max(a.Min, 1)))
		}
	}
	return gone, nil
}

func (j *job) count(pattern string) (int, error) {
	left, err := ask(j, "artifacts", func(ctx context.Context) ([]goclaw.Artifact, error) {
		return j.e.o.Store.ArtifactsOf(ctx, goclaw.ArtifactFilter{Run: j.r.ID})
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, a := range left {
		if ok, err := path.Match(pattern, a.Name); err == nil && ok {
			n++
		}
	}
	if j.e.o.Texts == nil {
		return n, nil
	}
	found, err := j.e.o.Texts.Read(j.ctx, j.r.Profile.Workspace, j.r.Profile.Access(j.r.Session, j.r.ID),
		[]slices.Want{{Name: "artifacts", Glob: pattern, Optional: true, Lenient: true}})
	return n + len(found), err
}

// remind sends a worker back that says it is done and has not left what its
// definition declares: once, then the run fails.
func (j *job) remind(a *turn.Action, last []goclaw.Event) (back bool, err error) {
	gone, err := j.missing()
	if err != nil || len(gone) == 0 {
		return false, err
	}
	list := strings.Join(gone, ", ")
	if j.state.Reminders > 0 {
		a.State, a.Error = goclaw.StateFailed, "the worker says that it is done, and has not left what its definition declares: "+list
		return false, nil
	}
	return true, j.sendBack(last, goclaw.InputEvent{Reminder: true, Message: goclaw.Text(goclaw.RoleUser,
		"You are not done: "+list+" must exist when you are. Write what is missing (a file of the workspace, or artifact_write), then give your answer again.")})
}
