package main

import (
	"fmt"
	"slices"
	"sync"

	"goclaw"
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
	return definition.Options{UserFacingTools: cfg.Definitions.UserFacingTools, Available: s.there(mainTools), Absent: s.absent}
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

func reportOf(d definition.Definition) goclaw.DefinitionReport {
	r := goclaw.DefinitionReport{
		Kind: "definition", Path: d.Path, Name: d.Name, Description: d.Description, Scope: d.Scope, Trusted: d.Trusted,
		Overrides: d.Overrides, Status: d.Status, Tools: []string{}, ToolsListed: d.Tools.Allow != nil,
		Denied: append([]string{}, d.Tools.Deny...), Rules: append([]goclaw.DefinitionRule{}, d.Tools.Rules...),
		Model: d.Model, Visibility: d.Visibility, TimeoutSecs: d.TimeoutSeconds, SHA256: d.SHA256,
		Problems: append([]goclaw.DefinitionProblem{}, d.Problems...),
	}
	if d.Status != definition.StatusRejected {
		r.Tools = append(r.Tools, d.ResolvedTools()...)
	}
	return r
}

// shelf reports definitions to the gateway.
type shelf struct{ settings }

// Definitions are those of an agent's workspace as they are now.
func (s shelf) Definitions(agent string) ([]goclaw.DefinitionReport, error) {
	a, ok := s.rules.Agents[agent]
	if !ok {
		return nil, fmt.Errorf("agent %q: %w", agent, goclaw.ErrNotFound)
	}
	return reports(s.definitions.catalog(a.Workspace)), nil
}

// Definition is one of them, with its text.
func (s shelf) Definition(agent, name string) (goclaw.DefinitionReport, error) {
	a, ok := s.rules.Agents[agent]
	if !ok {
		return goclaw.DefinitionReport{}, fmt.Errorf("agent %q: %w", agent, goclaw.ErrNotFound)
	}
	d, ok := s.definitions.catalog(a.Workspace).Find(name)
	if !ok {
		return goclaw.DefinitionReport{}, fmt.Errorf("definition %q: %w", name, goclaw.ErrNotFound)
	}
	r := reportOf(d)
	r.Active, r.Body = true, d.Body
	return r, nil
}

// reports are those of a whole catalog, in its order.
func reports(c definition.Catalog) []goclaw.DefinitionReport {
	active := c.Active()
	all := c.All()
	out := make([]goclaw.DefinitionReport, len(all))
	for i, d := range all {
		out[i] = reportOf(d)
		out[i].Active = slices.ContainsFunc(active, func(a definition.Definition) bool { return a.Path == d.Path })
	}
	return out
}
