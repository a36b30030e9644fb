package client

import (
	"context"
	"net/http"

	"goclaw"
)

// LoginLink makes a link that signs a browser in to the web page, once.
func (c *Client) LoginLink(ctx context.Context) (goclaw.LoginLink, error) {
	var link goclaw.LoginLink
	_, err := c.call(ctx, http.MethodPost, "/api/login-links", nil, nil, &link)
	return link, wrap("make a login link", err)
}
