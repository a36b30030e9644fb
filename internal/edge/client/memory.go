package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"goclaw"
)

// SearchMemory looks something up in an agent's memory.
func (c *Client) SearchMemory(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error) {
	query := url.Values{"q": {q.Text}}
	if q.Agent != "" {
		query.Set("agent", q.Agent)
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	for _, s := range q.Sources {
		query.Add("source", string(s))
	}
	var found goclaw.MemoryAnswer
	_, err := c.call(ctx, http.MethodGet, "/api/memory/search", query, nil, &found)
	return found, wrap("search memory", err)
}

// MemoryStatus describes the index of an agent's memory.
func (c *Client) MemoryStatus(ctx context.Context, agent string) (goclaw.MemoryStatus, error) {
	query := url.Values{}
	if agent != "" {
		query.Set("agent", agent)
	}
	var status goclaw.MemoryStatus
	_, err := c.call(ctx, http.MethodGet, "/api/memory/status", query, nil, &status)
	return status, wrap("read the state of memory", err)
}

// ReindexMemory makes the index of memory anew, of all agents.
func (c *Client) ReindexMemory(ctx context.Context) ([]goclaw.MemoryStatus, error) {
	var all []goclaw.MemoryStatus
	_, err := c.call(ctx, http.MethodPost, "/api/memory/reindex", nil, nil, &all)
	return all, wrap("index memory", err)
}
