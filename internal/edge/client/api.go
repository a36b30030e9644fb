package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"goclaw"
)

// awaitSeconds is how long one request of Await waits: short enough for what
// stands between client and server to keep an idle connection open.
const awaitSeconds = 60

// Receive hands a message to its session. The run that it becomes does not
// depend on ctx.
func (c *Client) Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	var receipt goclaw.Receipt
	_, err := c.call(ctx, http.MethodPost, "/api/messages", nil, in, &receipt)
	return receipt, wrap("send message", err)
}

// Await blocks until the run, and with workers everything that it led to, has
// ended.
func (c *Client) Await(ctx context.Context, runID string, workers bool) (goclaw.Outcome, error) {
	query := url.Values{"timeout": {strconv.Itoa(awaitSeconds)}}
	if workers {
		query.Set("workers", "true")
	}
	for {
		var out goclaw.Outcome
		status, err := c.call(ctx, http.MethodGet, "/api/messages/"+url.PathEscape(runID), query, nil, &out)
		if err != nil || status != http.StatusNoContent {
			return out, wrap("await run "+runID, err)
		}
	}
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error) {
	var runs []goclaw.Run
	_, err := c.call(ctx, http.MethodGet, "/api/runs", filterQuery(f), nil, &runs)
	return runs, wrap("list runs", err)
}

// Placed is a run with its place in the queue, from 1; 0 if it is not in it.
type Placed struct {
	goclaw.Run
	Position int `json:"position"`
}

// Info summarises the run and its place.
func (p Placed) Info() goclaw.RunInfo {
	info := p.Run.Info()
	info.Position = p.Position
	return info
}

// Placed lists runs, newest first, with their places in the queue.
func (c *Client) Placed(ctx context.Context, f goclaw.RunFilter) ([]Placed, error) {
	var runs []Placed
	_, err := c.call(ctx, http.MethodGet, "/api/runs", filterQuery(f), nil, &runs)
	return runs, wrap("list runs", err)
}

func filterQuery(f goclaw.RunFilter) url.Values {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Add(name, value)
		}
	}
	set("session", f.Session.String())
	set("requester", f.Requester.String())
	set("parent", f.Parent)
	set("root", f.Root)
	for _, t := range f.Triggers {
		set("trigger", string(t))
	}
	if f.Active {
		set("active", "true")
	}
	if f.Ended {
		set("ended", "true")
	}
	if f.Limit != 0 {
		set("limit", strconv.Itoa(f.Limit))
	}
	return query
}

// Run returns a run, named by its id or an unambiguous prefix, with its place.
func (c *Client) Run(ctx context.Context, id string) (Placed, error) {
	var run Placed
	_, err := c.call(ctx, http.MethodGet, runPath(id, ""), nil, nil, &run)
	return run, wrap("read run "+id, err)
}

// runPath is where a run, or what action names of it, is found.
func runPath(id, action string) string { return "/api/runs/" + url.PathEscape(id) + action }

// RunLog returns a run, named by its id or an unambiguous prefix, with its
// events.
func (c *Client) RunLog(ctx context.Context, id string) (goclaw.RunLog, error) {
	var log goclaw.RunLog
	_, err := c.call(ctx, http.MethodGet, runPath(id, "/log"), nil, nil, &log)
	return log, wrap("read run "+id, err)
}

// Cancel asks for the end of a run and of what it started, and returns the
// runs that were marked.
func (c *Client) Cancel(ctx context.Context, id, why string) ([]goclaw.Run, error) {
	body := struct {
		Why string `json:"why,omitempty"`
	}{why}
	var runs []goclaw.Run
	_, err := c.call(ctx, http.MethodPost, runPath(id, "/cancel"), nil, body, &runs)
	return runs, wrap("cancel run "+id, err)
}

// Sessions lists the sessions.
func (c *Client) Sessions(ctx context.Context) ([]goclaw.Session, error) {
	var sessions []goclaw.Session
	_, err := c.call(ctx, http.MethodGet, "/api/sessions", nil, nil, &sessions)
	return sessions, wrap("list sessions", err)
}

// History returns a session's runs with their events, oldest first.
func (c *Client) History(ctx context.Context, key goclaw.SessionKey) ([]goclaw.RunLog, error) {
	var logs []goclaw.RunLog
	_, err := c.call(ctx, http.MethodGet, "/api/sessions/"+url.PathEscape(key.String())+"/history", nil, nil, &logs)
	return logs, wrap("read session "+key.String(), err)
}

// Context returns the prompt that q asks for.
func (c *Client) Context(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	query := url.Values{}
	for name, value := range map[string]string{"session": q.Session.String(), "agent": q.Agent, "run": q.Run, "definition": q.Definition, "input": q.Input} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var prompt goclaw.Prompt
	_, err := c.call(ctx, http.MethodGet, "/api/context", query, nil, &prompt)
	return prompt, wrap("explain context", err)
}

// AsSent returns the request of a run's model call, from 1 (0: the last), as it
// was sent. Of the run it holds the id only, and no prompt.
func (c *Client) AsSent(ctx context.Context, run string, step int) (goclaw.Sent, error) {
	operation := "read what run " + run + " was sent"
	query := url.Values{"run": {run}}
	if step != 0 {
		query.Set("step", strconv.Itoa(step))
	}
	res, err := c.do(ctx, http.MethodGet, "/api/context/sent", query, nil, "")
	if err != nil {
		return goclaw.Sent{}, wrap(operation, err)
	}
	defer res.Body.Close()
	header := func(name string) string { return res.Header.Get("X-GoClaw-" + name) }
	sent := goclaw.Sent{Run: goclaw.Run{ID: header("Run")}, Model: header("Model")}
	if sent.Session, err = goclaw.ParseSessionKey(header("Session")); err != nil {
		return goclaw.Sent{}, wrap(operation, err)
	}
	for name, into := range map[string]*int{"Step": &sent.Step, "Steps": &sent.Steps} {
		if *into, err = strconv.Atoi(header(name)); err != nil {
			return goclaw.Sent{}, wrap(operation, err)
		}
	}
	sent.Body, err = io.ReadAll(res.Body)
	return sent, wrap(operation, err)
}

// ContextDiff compares two requests, each named by a session's key, a run, or
// RUN#STEP.
func (c *Client) ContextDiff(ctx context.Context, a, b string) (goclaw.SentDiff, error) {
	var diff goclaw.SentDiff
	_, err := c.call(ctx, http.MethodGet, "/api/context/diff", url.Values{"a": {a}, "b": {b}}, nil, &diff)
	return diff, wrap("compare contexts", err)
}

// Status describes the gateway.
func (c *Client) Status(ctx context.Context) (goclaw.Status, error) {
	var status goclaw.Status
	_, err := c.call(ctx, http.MethodGet, "/api/status", nil, nil, &status)
	return status, wrap("read status", err)
}

// Health returns nil if a gateway answers and is ready to work. It needs no
// token.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/readyz", nil, nil, nil)
	return wrap("check health", err)
}

// wrap adds the operation to err, if there is one.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}
