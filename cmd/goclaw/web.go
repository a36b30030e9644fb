package main

import (
	"slices"
	"time"

	"goclaw/internal/edge/config"
	webtool "goclaw/internal/edge/tool/web"
)

// How the tools that use the web are configured.
const (
	howToSearch = "set tools.web.search.provider to brave or searxng in goclaw.json (docs/config.md)"
	howToFetch  = "set tools.web.fetch.enabled to true in goclaw.json"
)

// absentTools are the tools that the configuration leaves out, each with what to
// do for it. It opens no secret: any command may ask.
func absentTools(cfg config.Config, getenv func(string) string) map[string]string {
	absent := map[string]string{}
	if !cfg.Tools.Web.Fetch.Enabled {
		absent[webtool.FetchName] = howToFetch
	}
	switch {
	case !cfg.Tools.Web.Search.Enabled:
		absent[webtool.SearchName] = "set tools.web.search.enabled to true in goclaw.json"
	case cfg.SearchProvider(getenv) == "":
		absent[webtool.SearchName] = howToSearch
	}
	return absent
}

// there are those of the names whose tools are not absent.
func (s settings) there(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.absent[name] != "" })
}

// addWeb makes the tools that use the web. A search without its key is left out,
// with a word of it; all else works.
func (s *settings) addWeb(c *cli, cfg config.Config) {
	fetch, search := cfg.Tools.Web.Fetch, cfg.Tools.Web.Search
	if s.absent[webtool.FetchName] == "" {
		s.web = append(s.web, webtool.Fetch(webtool.FetchOptions{
			MaxChars: fetch.MaxChars, Timeout: time.Duration(fetch.TimeoutSeconds) * time.Second,
			MaxRedirects: fetch.MaxRedirects, UserAgent: fetch.UserAgent, AllowHosts: fetch.AllowHosts,
		}))
	}
	if s.absent[webtool.SearchName] != "" {
		return
	}
	provider := cfg.SearchProvider(c.Getenv)
	key, from, err := cfg.SearchKey(c.Getenv, s.secrets)
	if err != nil {
		s.absent[webtool.SearchName] = err.Error()
		s.notes = append(s.notes, "web_search is not there: "+err.Error())
		s.keys = append(s.keys, keySource{Provider: provider, Missing: err.Error()})
		return
	}
	if from != "" {
		s.keys = append(s.keys, keySource{Provider: provider, From: from})
	}
	s.hide.Add(key.Reveal())
	s.web = append(s.web, webtool.Search(webtool.SearchOptions{
		Provider: provider, APIKey: key.Reveal(), BaseURL: search.BaseURL, MaxResults: search.MaxResults,
		Timeout: time.Duration(search.TimeoutSeconds) * time.Second, UserAgent: fetch.UserAgent,
	}))
}

// examineWeb says of each tool that uses the web whether it is there.
func examineWeb(s settings, add func(string, error, string) bool) {
	for _, name := range []string{webtool.FetchName, webtool.SearchName} {
		state := "there"
		if how := s.absent[name]; how != "" {
			state = "not configured; " + how
		}
		add(name, nil, state)
	}
}
