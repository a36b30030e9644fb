package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/definitions"
)

//go:embed agent_template.md
var agentTemplate string

// agentReport is what scripts see of a configured agent.
type agentReport struct {
	Kind      string `json:"kind"` // agent
	Name      string `json:"name"` // its id
	Title     string `json:"title,omitempty"`
	Model     string `json:"model,omitempty"`
	Workspace string `json:"workspace"`
}

func (c *cli) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "agents", Short: "Look at agents and at the definitions of workers",
		Long: "Lists the configured agents and the definitions of workers: markdown files in\n" +
			"GOCLAW_HOME/agents and in a workspace's .goclaw/agents, .claude/agents and .opencode/agent.",
	}
	group(cmd)
	var agent string
	list := func(*cobra.Command, []string) error { return c.listAgents(agent) }
	cmd.RunE = list
	lists := &cobra.Command{Use: "list", Short: "List agents and definitions, each with its kind", Args: no, RunE: list}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show a definition or an agent", Args: one("NAME", "goclaw agents lists them"),
		RunE: func(_ *cobra.Command, args []string) error { return c.showAgent(agent, args[0]) },
	}
	check := &cobra.Command{
		Use: "check [PATH...]", Short: "Check definition files, or all that are in use",
		Long: "Reads the files, and all files in the folders, that PATHs name; without any, those of\n" +
			"all scopes. Each problem is a line PATH:LINE:COL: what; what to do. It fails if a file\n" +
			"is rejected. Files that PATHs name are judged one by one: two may have the same name.",
		RunE: func(_ *cobra.Command, args []string) error { return c.checkAgents(agent, args) },
	}
	for _, sub := range []*cobra.Command{lists, show, check} {
		sub.Flags().StringVar(&agent, "agent", config.DefaultAgent, "ID of the agent whose workspace is looked at")
	}
	var here bool
	create := &cobra.Command{
		Use: "new NAME", Short: "Write a commented definition to start from", Args: one("NAME", "choose one such as code-reviewer"),
		RunE: func(_ *cobra.Command, args []string) error { return c.newAgent(args[0], here) },
	}
	create.Flags().BoolVar(&here, "in-workspace", false, "write it to the workspace's .goclaw/agents instead of GOCLAW_HOME/agents")
	eject := &cobra.Command{
		Use: "eject NAME", Short: "Write a built-in definition to GOCLAW_HOME/agents, to change it",
		Args: one("NAME", "there are: "+strings.Join(definitions.BuiltinNames(), ", ")),
		RunE: func(_ *cobra.Command, args []string) error { return c.ejectAgent(args[0]) },
	}
	cmd.AddCommand(lists, show, check, create, eject, c.testAgent())
	return cmd
}

// scan returns what is configured and the catalog of an agent's workspace.
func (c *cli) scan(agent string) (settings, config.Config, definition.Catalog, error) {
	s, cfg, err := c.locate()
	if err != nil {
		return s, cfg, definition.Catalog{}, err
	}
	a, ok := cfg.Agent(agent)
	if !ok {
		return s, cfg, definition.Catalog{}, usagef("no agent %q is configured", agent)
	}
	dir, err := c.workspaceOf(s.home, a)
	if err != nil {
		return s, cfg, definition.Catalog{}, usage(err)
	}
	var unread error // then nothing of the workspace is trusted
	catalog := s.library(cfg, func(workspace string) bool {
		ok, err := s.trust.Trusted(workspace)
		if !errors.Is(err, fs.ErrNotExist) { // one that is yet to be made holds nothing to trust
			unread = errors.Join(unread, err)
		}
		return ok
	}).catalog(dir)
	if unread != nil {
		fmt.Fprintf(c.Stderr, "goclaw: warning: %v\n", unread)
	}
	return s, cfg, catalog, nil
}

func (c *cli) listAgents(agent string) error {
	s, cfg, catalog, err := c.scan(agent)
	if err != nil {
		return err
	}
	rows := []any{}
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s  %-24s  %-9s  %-9s  %s\n", "KIND", "NAME", "STATUS", "SCOPE", "DESCRIPTION")
	for _, a := range cfg.AllAgents() {
		r, err := c.agentReport(a, s.home)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		fmt.Fprintf(&b, "%-10s  %-24s  %-9s  %-9s  %s\n", r.Kind, a.ID, "ok", "config", r.Workspace)
	}
	for _, r := range reports(catalog) {
		rows = append(rows, r)
		status, about := string(r.Status), strings.Join(strings.Fields(r.Description), " ")
		switch {
		case !r.Active:
			status = "hidden"
		case !r.Trusted && r.Status != definition.StatusRejected:
			status = "untrusted"
		}
		if why := cause(r); why != "" {
			about = why
		} else if r.Overrides != "" {
			about = "(overrides " + r.Overrides + ") " + about
		}
		fmt.Fprintf(&b, "%-10s  %-24s  %-9s  %-9s  %s\n", r.Kind, r.Name, status, r.Scope, shorten(about, 160))
	}
	return c.print(rows, b.String)
}

// cause is the first problem for which a definition can't be spawned, "" if it
// can.
func cause(r goclaw.DefinitionReport) string {
	level := definition.LevelError
	switch r.Status {
	case definition.StatusRejected:
	case definition.StatusDegraded:
		level = definition.LevelDegrade
	default:
		return ""
	}
	for _, p := range r.Problems {
		if p.Level == level {
			return p.Render(r.Path)
		}
	}
	return ""
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func (c *cli) agentReport(a config.AgentConfig, h home) (agentReport, error) {
	dir, err := c.workspaceOf(h, a)
	if err != nil {
		return agentReport{}, usage(err)
	}
	r := agentReport{Kind: "agent", Name: a.ID, Model: a.Model, Workspace: dir}
	if a.Name != a.ID {
		r.Title = a.Name
	}
	return r, nil
}

func (c *cli) showAgent(agent, name string) error {
	s, cfg, catalog, err := c.scan(agent)
	if err != nil {
		return err
	}
	d, ok := catalog.Find(name)
	if !ok {
		a, configured := cfg.Agent(name)
		if !configured {
			return fmt.Errorf("no definition and no agent is called %q; goclaw agents lists them", name)
		}
		r, err := c.agentReport(a, s.home)
		if err != nil {
			return err
		}
		return c.print(r, func() string { return fmt.Sprintf("agent %s\nworkspace %s\nmodel %s", r.Name, r.Workspace, r.Model) })
	}
	r := reportOf(d)
	r.Active, r.Body = true, d.Body
	return c.print(r, func() string { return definitionText(r) })
}

func definitionText(r goclaw.DefinitionReport) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, text)
		}
	}
	line("definition", r.Name)
	line("file", r.Path)
	line("scope", r.Scope)
	line("overrides", r.Overrides)
	line("status", string(r.Status))
	if !r.Trusted {
		line("trusted", "no: it came with the workspace, so it is listed and not run")
	}
	line("description", strings.Join(strings.Fields(r.Description), " "))
	tools := strings.Join(r.Tools, ", ")
	if tools == "" {
		tools = "none"
	}
	line("tools", tools)
	line("denied", strings.Join(r.Denied, ", "))
	for _, rule := range r.Rules {
		line("rule", fmt.Sprintf("%s %s: %s", rule.Tool, rule.Pattern, rule.Action))
	}
	line("model", r.Model)
	line("visibility", r.Visibility)
	if r.TimeoutSecs != nil {
		line("timeout", fmt.Sprintf("%ds", *r.TimeoutSecs))
	}
	line("sha256", r.SHA256)
	for _, p := range r.Problems {
		line(string(p.Level), p.Render(r.Path))
	}
	return b.String() + "\n" + r.Body
}

// checkAgents prints what is wrong with files, and fails if one is rejected.
func (c *cli) checkAgents(agent string, paths []string) error {
	var found []goclaw.DefinitionReport
	var absent map[string]string
	if len(paths) == 0 {
		s, _, catalog, err := c.scan(agent)
		if err != nil {
			return err
		}
		found, absent = reports(catalog), s.absent
	} else {
		s, cfg, err := c.locate()
		if err != nil {
			return err
		}
		absent = s.absent
		for _, p := range paths {
			files, err := definitions.Find(p)
			if err != nil {
				return usage(err)
			}
			for _, f := range files {
				d := parseFile(f, s.definitionOptions(cfg))
				d.Trusted = false
				found = append(found, reportOf(d))
			}
		}
	}
	if found == nil {
		found = []goclaw.DefinitionReport{}
	}
	counts := map[definition.Status]int{}
	var b strings.Builder
	for _, r := range found {
		counts[r.Status]++
		for _, p := range r.Problems {
			if p.Level != definition.LevelNotice || c.verbose {
				fmt.Fprintf(&b, "%s: %s\n", p.Level, p.Render(r.Path))
			}
		}
	}
	b.WriteString(missed(found, absent))
	fmt.Fprintf(&b, "%d files: %d ok, %d with warnings, %d degraded, %d rejected\n", len(found), counts[definition.StatusOK],
		counts[definition.StatusWarning], counts[definition.StatusDegraded], counts[definition.StatusRejected])
	if err := c.print(map[string]any{"files": found}, b.String); err != nil {
		return err
	}
	if counts[definition.StatusRejected] > 0 {
		return exitError{code: exitFailed}
	}
	return nil
}

// missed says, in a line each, which absent tools files name.
func missed(found []goclaw.DefinitionReport, absent map[string]string) string {
	var b strings.Builder
	for _, tool := range slices.Sorted(maps.Keys(absent)) {
		n := 0
		for _, r := range found {
			if r.ToolsListed && slices.Contains(r.Tools, tool) {
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(&b, "%s is not configured, and named by %d of them; %s\n", tool, n, absent[tool])
		}
	}
	return b.String()
}

func (c *cli) newAgent(name string, here bool) error {
	s, cfg, err := c.locate()
	if err != nil {
		return err
	}
	dir := s.home.path("agents")
	if here {
		a, _ := cfg.Agent(config.DefaultAgent)
		workspace, err := c.workspaceOf(s.home, a)
		if err != nil {
			return usage(err)
		}
		dir = filepath.Join(workspace, ".goclaw", "agents")
	}
	slug := definition.Definition{Name: name}.Slug()
	if slug == "" {
		return usagef("name %q holds no letter and no digit; choose one such as code-reviewer", name)
	}
	return c.writeDefinition(dir, slug, fmt.Sprintf(agentTemplate, slug, strings.Join(definition.WorkerSet(), ", ")))
}

func (c *cli) ejectAgent(name string) error {
	s, _, err := c.locate()
	if err != nil {
		return err
	}
	data, ok := definitions.Builtin(name)
	if !ok {
		return usagef("no built-in definition is called %q; there are: %s", name, strings.Join(definitions.BuiltinNames(), ", "))
	}
	return c.writeDefinition(s.home.path("agents"), name, string(data))
}

// writeDefinition makes a file, and never replaces one.
func (c *cli) writeDefinition(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("folder %s can't be made: %w", dir, reason(err))
	}
	file := filepath.Join(dir, name+".md")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; edit it, or remove it first", file)
	}
	if err != nil {
		return fmt.Errorf("%s can't be written: %w", file, reason(err))
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s can't be written: %w", file, reason(err))
	}
	return c.print(map[string]string{"path": file}, func() string { return "wrote " + file })
}
