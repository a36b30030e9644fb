package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"goclaw"
)

// Artifacts lists what runs left, newest first. A run is named by its id or an
// unambiguous prefix.
func (c *Client) Artifacts(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.ArtifactInfo, error) {
	query := url.Values{}
	for name, value := range map[string]string{"run": f.Run, "session": f.Session.String(), "root": f.Root, "name": f.Name} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	var found []goclaw.ArtifactInfo
	_, err := c.call(ctx, http.MethodGet, "/api/artifacts", query, nil, &found)
	return found, wrap("list artifacts", err)
}

// Artifact returns the content of a run's artifact.
func (c *Client) Artifact(ctx context.Context, run, name string) ([]byte, error) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	operation := "read artifact " + name
	res, err := c.do(ctx, http.MethodGet, "/api/artifacts/"+url.PathEscape(run)+"/"+strings.Join(parts, "/"), nil, nil, "")
	if err != nil {
		return nil, wrap(operation, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return data, wrap(operation, err)
}
