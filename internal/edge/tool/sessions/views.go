package sessions

import (
	"context"
	"encoding/json"

	"goclaw"
)

type session struct {
	SessionKey string             `json:"sessionKey"`
	Kind       goclaw.SessionKind `json:"kind"`
	Turns      int                `json:"turns"`
	UpdatedAt  string             `json:"updatedAt"`
}

func (d deps) list(ctx context.Context, in goclaw.Invocation) (any, error) {
	q := struct{ Limit int }{Limit: 20}
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	all, err := d.transcripts.AllSessions(ctx)
	if err != nil {
		return nil, err
	}
	asked, err := d.mine(ctx, in.Session, goclaw.RunFilter{})
	if err != nil {
		return nil, err
	}
	requester := map[goclaw.SessionKey]goclaw.SessionKey{}
	for _, r := range asked {
		requester[r.Session] = r.Requester
	}
	access := in.Profile.Access(in.Session, in.Fence.Run)
	out := []session{}
	for _, s := range all {
		ok, _ := access.MaySee(goclaw.Thing{Session: s.Key, Requester: requester[s.Key]})
		if !ok || s.DeletedAt != 0 || len(out) == q.Limit {
			continue
		}
		out = append(out, session{s.Key.String(), s.Key.Kind, s.Turns, s.UpdatedAt.Time().Format("2006-01-02 15:04Z")})
	}
	return out, nil
}

func (d deps) status(ctx context.Context, in goclaw.Invocation) (any, error) {
	active, err := d.mine(ctx, in.Session, goclaw.RunFilter{Active: true})
	if err != nil {
		return nil, err
	}
	turns, err := d.records.Runs(ctx, goclaw.RunFilter{Session: in.Session})
	if err != nil {
		return nil, err
	}
	var used goclaw.Usage
	for _, r := range turns {
		used = used.Add(r.Usage)
	}
	workers := make([]worker, len(active))
	for i, r := range active {
		workers[i] = describe(r)
	}
	return map[string]any{
		"sessionKey": in.Session.String(), "model": in.Profile.Model, "thinking": in.Profile.Thinking,
		"turns": len(turns), "usage": used, "depth": in.Depth, "workers": workers,
	}, nil
}
