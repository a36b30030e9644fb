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

// RotateToken ends the gateway's token and all that came from it. The new one is
// where the gateway keeps it.
func (c *Client) RotateToken(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/api/token/rotate", nil, nil, nil)
	return wrap("change the token", err)
}
