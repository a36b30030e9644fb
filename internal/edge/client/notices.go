package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"goclaw"
)

// maxEvent bounds one server-sent event: a tool's result travels in one.
const maxEvent = 32 << 20

// Notices returns the live notices of a session and its workers, or with the
// zero key those of all sessions. When it returns, the server is listening:
// what happens from then on is in the stream.
//
// The channel is closed when ctx ends or the stream breaks; a caller tells
// them apart by ctx.Err. A reader who is slow loses notices and gets a
// goclaw.NoticeLag in their place.
func (c *Client) Notices(ctx context.Context, session goclaw.SessionKey) (<-chan goclaw.Notice, error) {
	query := url.Values{}
	if !session.IsZero() {
		query.Set("session", session.String())
	}
	res, err := c.do(ctx, http.MethodGet, "/api/events", query, nil, "")
	if err != nil {
		return nil, wrap("watch events", err)
	}
	out := make(chan goclaw.Notice)
	go func() {
		defer close(out)
		defer res.Body.Close()
		readNotices(ctx, res.Body, out)
	}()
	return out, nil
}

// readNotices decodes the data of each event in r until r or ctx ends. An
// event that it does not understand is of a newer server, and left out.
func readNotices(ctx context.Context, r io.Reader, out chan<- goclaw.Notice) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		var n goclaw.Notice
		if json.Unmarshal(data, &n) != nil {
			continue
		}
		select {
		case out <- n:
		case <-ctx.Done():
			return
		}
	}
}
