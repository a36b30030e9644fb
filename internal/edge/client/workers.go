package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"goclaw"
)

// Spawn starts a worker on behalf of a session; the zero key is the default
// agent's main session. A refusal is an error. The same once ("" is none)
// spawns once.
func (c *Client) Spawn(ctx context.Context, session goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error) {
	body := struct {
		Session goclaw.SessionKey `json:"session"`
		goclaw.SpawnRequest
	}{session, q}
	var reply goclaw.SpawnReply
	_, err := c.callOnce(ctx, http.MethodPost, "/api/runs", nil, body, &reply, once)
	return reply, wrap("spawn", err)
}

// RunFlow starts the flow of a file, whose name is for messages.
func (c *Client) RunFlow(ctx context.Context, session goclaw.SessionKey, file, text string, input json.RawMessage, once string) (goclaw.SpawnReply, error) {
	body := struct {
		Session goclaw.SessionKey `json:"session"`
		File    string            `json:"file"`
		Flow    string            `json:"flow"`
		Input   json.RawMessage   `json:"input,omitempty"`
	}{session, file, text, input}
	var reply goclaw.SpawnReply
	_, err := c.callOnce(ctx, http.MethodPost, "/api/flows", nil, body, &reply, once)
	return reply, wrap("run flow", err)
}

// WaitRun blocks until the run has ended.
func (c *Client) WaitRun(ctx context.Context, id string) (goclaw.Run, error) {
	query := url.Values{"timeout": {strconv.Itoa(awaitSeconds)}}
	for {
		var run goclaw.Run
		status, err := c.call(ctx, http.MethodGet, runPath(id, "/wait"), query, nil, &run)
		if err != nil || status != http.StatusNoContent {
			return run, wrap("wait for run "+id, err)
		}
	}
}

// Steer hands a message to a worker under way: goclaw.ErrEnded if it can read
// nothing any more. The same once ("" is none) is taken once.
func (c *Client) Steer(ctx context.Context, id, text, once string) (goclaw.Run, error) {
	body := map[string]string{"message": text}
	var run goclaw.Run
	_, err := c.callOnce(ctx, http.MethodPost, runPath(id, "/steer"), nil, body, &run, once)
	return run, wrap("steer run "+id, err)
}

// Resume lets a run go on that waits for a person.
func (c *Client) Resume(ctx context.Context, id string) (goclaw.Run, error) {
	var run goclaw.Run
	_, err := c.call(ctx, http.MethodPost, runPath(id, "/resume"), nil, nil, &run)
	return run, wrap("resume run "+id, err)
}

// Parked lists the deliveries that wait for a person, oldest first.
func (c *Client) Parked(ctx context.Context) ([]goclaw.Parked, error) {
	var parked []goclaw.Parked
	_, err := c.call(ctx, http.MethodGet, "/api/parked", nil, nil, &parked)
	return parked, wrap("list parked deliveries", err)
}

// RetryParked makes a parked delivery, named by its id or an unambiguous
// prefix, pending again.
func (c *Client) RetryParked(ctx context.Context, id string) (goclaw.Parked, error) {
	var parked goclaw.Parked
	_, err := c.call(ctx, http.MethodPost, "/api/parked/"+url.PathEscape(id)+"/retry", nil, nil, &parked)
	return parked, wrap("retry delivery "+id, err)
}

// DismissParked gives a parked delivery up for good.
func (c *Client) DismissParked(ctx context.Context, id string) (goclaw.Parked, error) {
	var parked goclaw.Parked
	_, err := c.call(ctx, http.MethodDelete, "/api/parked/"+url.PathEscape(id), nil, nil, &parked)
	return parked, wrap("dismiss delivery "+id, err)
}

// Usage sums recorded model calls.
func (c *Client) Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"by": strings.Join(q.By, ","), "since": q.Since, "until": q.Until, "agent": q.Agent, "tree": q.Tree,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var rows []goclaw.UsageRow
	_, err := c.call(ctx, http.MethodGet, "/api/usage", query, nil, &rows)
	return rows, wrap("read usage", err)
}

// Paused tells whether models may be called.
func (c *Client) Paused(ctx context.Context) (goclaw.Pause, error) {
	var pause goclaw.Pause
	_, err := c.call(ctx, http.MethodGet, "/api/pause", nil, nil, &pause)
	return pause, wrap("read pause", err)
}

// SetPause stops all model calls everywhere, or lets them go on.
func (c *Client) SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error) {
	method, body := http.MethodDelete, any(nil)
	if on {
		method, body = http.MethodPut, map[string]string{"why": why}
	}
	var pause goclaw.Pause
	_, err := c.call(ctx, method, "/api/pause", nil, body, &pause)
	return pause, wrap("set pause", err)
}
