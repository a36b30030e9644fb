package sessions

import (
	"context"
	"encoding/json"
	"fmt"

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
	out := []session{}
	for _, s := range all {
		if s.Agent != in.Session.Agent || s.DeletedAt != 0 || len(out) == q.Limit {
			continue
		}
		out = append(out, session{s.Key.String(), s.Key.Kind, s.Turns, s.UpdatedAt.Time().Format("2006-01-02 15:04Z")})
	}
	return out, nil
}

type line struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

func (d deps) history(ctx context.Context, in goclaw.Invocation) (any, error) {
	q := struct {
		SessionKey string
		Limit      int
	}{Limit: 20}
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	key, err := goclaw.ParseSessionKey(q.SessionKey)
	if err != nil {
		return nil, err
	}
	if in.Session.IsWorker() && key != in.Session {
		return goclaw.Forbidden("a worker can't read other sessions"), nil
	}
	if key.Agent != in.Session.Agent {
		return goclaw.Forbidden(fmt.Sprintf("%s belongs to another agent", key)), nil
	}
	logs, err := d.transcripts.History(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	lines := []line{}
	for _, l := range logs {
		lines = append(lines, said(l.Events)...)
	}
	if len(lines) == 0 {
		return nil, goclaw.BadRequest(fmt.Sprintf("%s has no transcript (sessions_list shows the sessions)", key))
	}
	return lines[max(0, len(lines)-q.Limit):], nil
}

func said(events []goclaw.Event) []line {
	var lines []line
	for _, e := range events {
		switch {
		case e.Prompt != nil:
			lines = append(lines, line{"user", e.Prompt.Input.PlainText()})
		case e.Model != nil:
			text := e.Model.Message.PlainText()
			for _, c := range e.Model.Message.Calls() {
				text += fmt.Sprintf(" [%s %s]", c.Name, clip(c.Arguments))
			}
			lines = append(lines, line{"assistant", text})
		case e.Result != nil:
			lines = append(lines, line{"tool", e.Result.Name + ": " + clip(e.Result.Content)})
		}
	}
	return lines
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
