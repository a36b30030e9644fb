package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Web are the settings of the tools that use the web.
type Web struct {
	Search WebSearch `json:"search" doc:"The tool web_search. It is there once a service is configured."`
	Fetch  WebFetch  `json:"fetch" doc:"The tool web_fetch."`
}

// WebSearch are the settings of web_search.
type WebSearch struct {
	Enabled        bool   `json:"enabled" doc:"Whether there is web_search, once a service is configured. Default: true."`
	Provider       string `json:"provider,omitempty" enum:"brave,searxng" ref:"search" doc:"The service that is asked. Default: brave if BRAVE_API_KEY is set, else none."`
	APIKey         Sealed `json:"apiKey,omitzero" doc:"Brave's key, or {\"secret\": NAME}. Default: what BRAVE_API_KEY holds."`
	BaseURL        string `json:"baseURL,omitempty" format:"url" doc:"Where SearXNG is, which must offer the format json; or another address of Brave's API."`
	MaxResults     int    `json:"maxResults,omitempty" range:"1..20" doc:"Results of a search that doesn't say how many. Default: 5."`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" range:"1..300" doc:"When a search is given up. Default: 30."`
}

// WebFetch are the settings of web_fetch.
type WebFetch struct {
	Enabled        bool     `json:"enabled" doc:"Whether there is web_fetch. Default: true."`
	MaxChars       int      `json:"maxChars,omitempty" range:"1000..1000000" doc:"The most of a page that one call shows, in characters. Default: 30000."`
	TimeoutSeconds int      `json:"timeoutSeconds,omitempty" range:"1..300" doc:"When a page is given up. Default: 30."`
	MaxRedirects   int      `json:"maxRedirects,omitempty" range:"0..20" doc:"Redirects that are followed. Default: 5."`
	UserAgent      string   `json:"userAgent,omitempty" format:"line" doc:"How the tool calls itself to servers. Default: Mozilla/5.0 (compatible; GoClaw)."`
	AllowHosts     []string `json:"allowHosts,omitempty" format:"host" doc:"Hosts that may be fetched though they are private, exactly as addresses name them: HOST:PORT, or HOST for its ports 80 and 443."`
}

func defaultWeb() Web {
	return Web{
		Search: WebSearch{Enabled: true, MaxResults: 5, TimeoutSeconds: 30},
		Fetch:  WebFetch{Enabled: true, MaxChars: 30_000, TimeoutSeconds: 30, MaxRedirects: 5, UserAgent: "Mozilla/5.0 (compatible; GoClaw)"},
	}
}

const braveVar = "BRAVE_API_KEY"

// SearchProvider is the service that web_search asks, "" for none. Whether its
// key can be had is SearchKey's to say.
func (c Config) SearchProvider(getenv func(string) string) string {
	s := c.Tools.Web.Search
	switch {
	case !s.Enabled:
		return ""
	case s.Provider == "" && getenv(braveVar) != "":
		return "brave"
	}
	return s.Provider
}

// SearchKey is the key of the service that web_search asks, and where it comes
// from; both are empty for one that needs none.
func (c Config) SearchKey(getenv func(string) string, secrets Secrets) (key Secret, from string, err error) {
	if c.SearchProvider(getenv) != "brave" {
		return "", "", nil
	}
	if c.Tools.Web.Search.APIKey.IsZero() {
		if key = Secret(getenv(braveVar)); key == "" {
			return "", "", errors.New("tools.web.search has no key for brave: goclaw secrets set brave keeps one, then set apiKey to {\"secret\": \"brave\"}; or set " + braveVar)
		}
		return key, "the environment variable " + braveVar, nil
	}
	if key, from, err = c.Tools.Web.Search.APIKey.open(secrets); err != nil {
		err = fmt.Errorf("tools.web.search.apiKey: %w", err)
	}
	return key, from, err
}

// host refuses what no address can have between its slashes.
func (d *decoder) host(v hujson.Value, s, key string) {
	u, err := url.Parse("http://" + s)
	if err != nil || u.Host != s || u.Hostname() == "" || strings.HasSuffix(s, ":") || strings.ContainsAny(s, "*, ") {
		d.problem(v.StartOffset, "write HOST or HOST:PORT, such as wiki.example or 127.0.0.1:8080", "%s is %q", key, s)
		return
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			d.problem(v.StartOffset, "use a port from 1 to 65535", "%s is %q", key, s)
		}
	}
}

// webSearch checks the service of web_search as a whole.
func (d *decoder) webSearch(cfg *Config, r ref) {
	s := cfg.Tools.Web.Search
	switch {
	case s.Provider == "searxng" && s.BaseURL == "":
		d.refProblem(r, "add baseURL, the address of your SearXNG", "tools.web.search.baseURL is missing")
	case s.Provider == "searxng" && !s.APIKey.IsZero():
		d.refProblem(r, "remove apiKey", "tools.web.search.apiKey is for brave; SearXNG takes none")
	}
}
