package main

import (
	"slices"
	"sync"

	"goclaw/internal/core/definition"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/definitions"
)

// library joins the scan of definition files with their parsing. A file that
// did not change is neither read nor parsed again. It is safe for concurrent
// use.
type library struct {
	scanner *definitions.Scanner
	opts    definition.Options

	mu     sync.Mutex
	parsed map[string]parsedFile // by path
}

type parsedFile struct {
	serial uint64
	def    definition.Definition
}

// library makes the library of a home. trusted reports whether a person trusts
// a workspace; nil trusts none.
func (s settings) library(cfg config.Config, trusted func(workspace string) bool) *library {
	compat := cfg.Definitions.Compat == nil || *cfg.Definitions.Compat
	return &library{
		scanner: definitions.New(definitions.Options{Home: s.home.path("agents"), Compat: compat, Trusted: trusted}),
		opts:    s.definitionOptions(cfg),
		parsed:  map[string]parsedFile{},
	}
}

func (s settings) definitionOptions(cfg config.Config) definition.Options {
	return definition.Options{UserFacingTools: cfg.Definitions.UserFacingTools, Available: s.known().Tools}
}

// catalog looks at all scopes as they are now. workspace is absolute, "" for
// none.
func (l *library) catalog(workspace string) definition.Catalog {
	files := l.scanner.List(workspace)
	ranks := make(map[string]int, len(files))
	all := make([]definition.Definition, len(files))
	l.mu.Lock()
	for i, f := range files {
		ranks[f.Path] = f.Rank
		p, ok := l.parsed[f.Path]
		if !ok || f.Serial == 0 || p.serial != f.Serial {
			p = parsedFile{f.Serial, parseFile(f, l.opts)}
			l.parsed[f.Path] = p
		}
		all[i] = p.def
		all[i].Scope, all[i].Trusted = f.Scope, f.Trusted
	}
	l.mu.Unlock()
	return definition.NewCatalog(all, func(d definition.Definition) int { return ranks[d.Path] })
}

func parseFile(f definitions.File, opts definition.Options) definition.Definition {
	if f.Problem != "" {
		return definition.Unreadable(f.Path, f.Problem, f.Hint)
	}
	return definition.Parse(f.Path, f.Data, opts)
}

// definitionReport is what scripts see of a definition (spec section 12).
type definitionReport struct {
	Kind        string               `json:"kind"` // definition
	Path        string               `json:"path"`
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Scope       string               `json:"scope,omitempty"`
	Trusted     bool                 `json:"trusted"`
	Overrides   string               `json:"overrides,omitempty"`
	Active      bool                 `json:"active"` // false: another file has the name
	Status      definition.Status    `json:"status"`
	Tools       []string             `json:"tools"`       // that it comes down to
	ToolsListed bool                 `json:"toolsListed"` // false: the worker set
	Denied      []string             `json:"denied"`
	Rules       []definition.Rule    `json:"rules"`
	Model       string               `json:"model,omitempty"`
	Visibility  string               `json:"visibility,omitempty"`
	TimeoutSecs *int                 `json:"timeoutSeconds,omitempty"`
	SHA256      string               `json:"sha256,omitempty"`
	Problems    []definition.Problem `json:"problems"`
	Body        string               `json:"body,omitempty"`
}

func reportOf(d definition.Definition) definitionReport {
	r := definitionReport{
		Kind: "definition", Path: d.Path, Name: d.Name, Description: d.Description, Scope: d.Scope, Trusted: d.Trusted,
		Overrides: d.Overrides, Status: d.Status, Tools: []string{}, ToolsListed: d.Tools.Allow != nil,
		Denied: d.Tools.Deny, Rules: d.Tools.Rules, Model: d.Model, Visibility: d.Visibility,
		TimeoutSecs: d.TimeoutSeconds, SHA256: d.SHA256, Problems: d.Problems,
	}
	if d.Status != definition.StatusRejected {
		r.Tools = d.ResolvedTools()
	}
	if r.Denied == nil {
		r.Denied = []string{}
	}
	if r.Rules == nil {
		r.Rules = []definition.Rule{}
	}
	if r.Problems == nil {
		r.Problems = []definition.Problem{}
	}
	return r
}

// reports are those of a whole catalog, in its order.
func reports(c definition.Catalog) []definitionReport {
	active := c.Active()
	all := c.All()
	out := make([]definitionReport, len(all))
	for i, d := range all {
		out[i] = reportOf(d)
		out[i].Active = slices.ContainsFunc(active, func(a definition.Definition) bool { return a.Path == d.Path })
	}
	return out
}
