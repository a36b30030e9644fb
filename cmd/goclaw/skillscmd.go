package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/core/skill"
)

// skillView is one skill as `goclaw skills --json` prints it.
type skillView struct {
	goclaw.Skill
	Path      string          `json:"path"`
	Status    skill.Status    `json:"status"`
	Used      bool            `json:"used"`
	Why       string          `json:"why,omitempty"` // it is not used
	Overrides string          `json:"overrides,omitempty"`
	Problems  []skill.Problem `json:"problems"`
	Text      string          `json:"text,omitempty"` // show: the whole file
}

func viewOf(c skill.Choice) skillView {
	return skillView{
		Skill: c.Skill, Path: c.Path, Status: c.Status, Used: c.In, Why: c.Why,
		Overrides: c.Overrides, Problems: append([]skill.Problem{}, c.Problems...),
	}
}

// skillList is what `goclaw skills list --json` prints.
type skillList struct {
	Skills   []skillView `json:"skills"`
	Warnings []string    `json:"warnings"`
}

func (c *cli) skillsCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "skills", Short: "Look at the skills that agents know of", Aliases: []string{"skill"},
		Long: "Lists an agent's skills: which are used, from which file, and why the others are not.\n" +
			"show prints one; check reads files and says what is wrong with them.",
	}
	group(cmd)
	cmd.PersistentFlags().StringVar(&agent, "agent", "main", "ID of the agent whose skills it is about")
	list := func(*cobra.Command, []string) error { return c.listSkills(agent) }
	cmd.RunE = list
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List an agent's skills, used or not", Args: no, RunE: list,
	}, &cobra.Command{
		Use: "show NAME", Short: "Print a skill, and where it comes from",
		Args: one("NAME", "goclaw skills list shows those there are"),
		RunE: func(_ *cobra.Command, args []string) error { return c.showSkill(agent, args[0]) },
	}, &cobra.Command{
		Use: "check [PATH…]", Short: "Say what is wrong with skills; all of the agent's without PATH",
		Long: "A PATH is a SKILL.md, a skill's folder, or a folder with such folders beneath it.\n" +
			"The exit code is 1 if a skill is rejected.",
		RunE: func(_ *cobra.Command, args []string) error { return c.checkSkills(agent, args) },
	})
	return cmd
}

// skillsOf reads an agent's skills. It needs no gateway and no model.
func (c *cli) skillsOf(agent string) (skillStock, []skill.Choice, []string, error) {
	s, cfg, err := c.locate()
	if err != nil {
		return skillStock{}, nil, nil, err
	}
	a, ok := cfg.Agent(agent)
	if !ok {
		var ids []string
		for _, a := range cfg.AllAgents() {
			ids = append(ids, a.ID)
		}
		return skillStock{}, nil, nil, usagef("no agent %q is configured; there are: %s", agent, strings.Join(ids, ", "))
	}
	dir, err := c.workspaceOf(s.home, a)
	if err != nil {
		return skillStock{}, nil, nil, usage(err)
	}
	now, choices, warnings := s.skills.choose(goclaw.Profile{Agent: a.ID, Workspace: dir, Skills: a.Skills, PromptMode: goclaw.PromptFull})
	return now, choices, append(slices.Clone(now.tree.Warnings), warnings...), nil
}

func (c *cli) listSkills(agent string) error {
	now, choices, warnings, err := c.skillsOf(agent)
	if err != nil {
		return err
	}
	if line := now.untrusted(); line != "" {
		warnings = append(warnings, line)
	}
	out := skillList{Skills: make([]skillView, len(choices)), Warnings: append([]string{}, warnings...)}
	for i, ch := range choices {
		out.Skills[i] = viewOf(ch)
	}
	return c.print(out, func() string { return skillTable(out) })
}

// skillTable is for a person: what is used first.
func skillTable(l skillList) string {
	var b strings.Builder
	width := len("NAME")
	for _, s := range l.Skills {
		width = max(width, len(nameOr(s)))
	}
	fmt.Fprintf(&b, "%-*s  %-9s  %-4s  %s\n", width, "NAME", "SCOPE", "USED", "WHAT IT IS FOR, OR WHY IT IS NOT USED")
	for _, used := range []bool{true, false} {
		for _, s := range l.Skills {
			if s.Used != used {
				continue
			}
			mark, text := "yes", clipped(s.Description, 90)
			if !used {
				mark, text = "no", s.Why
			}
			if s.Overrides != "" {
				text += " (overrides " + s.Overrides + ")"
			}
			if used && s.Status == skill.Warned {
				text += " (goclaw skills check has warnings)"
			}
			fmt.Fprintf(&b, "%-*s  %-9s  %-4s  %s\n", width, nameOr(s), s.Scope, mark, text)
		}
	}
	for _, w := range l.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// nameOr is a skill's name, or the path of one that has none.
func nameOr(s skillView) string { return cmp.Or(s.Name, s.Path) }

func clipped(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func (c *cli) showSkill(agent, name string) error {
	now, choices, _, err := c.skillsOf(agent)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(choices, func(ch skill.Choice) bool { return ch.Name == name && ch.Usable() })
	if at < 0 {
		at = slices.IndexFunc(choices, func(ch skill.Choice) bool { return ch.Name == name })
	}
	if at < 0 {
		return fmt.Errorf("agent %s has no skill %q; goclaw skills list shows those there are", agent, name)
	}
	v := viewOf(choices[at])
	v.Text = string(now.files[v.Path].Data)
	return c.print(v, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "name      %s\nscope     %s\nfile      %s\nlocation  %s\n", v.Name, v.Scope, v.Path, v.Location)
		if v.Used {
			b.WriteString("used      yes\n")
		} else {
			fmt.Fprintf(&b, "used      no: %s\n", v.Why)
		}
		if v.Overrides != "" {
			fmt.Fprintf(&b, "overrides %s\n", v.Overrides)
		}
		for _, p := range v.Problems {
			fmt.Fprintf(&b, "%-9s %s\n", p.Severity, p.In(v.Path))
		}
		return b.String() + "\n" + v.Text
	})
}

// checkedFile is one file as `goclaw skills check --json` prints it (spec
// section 12).
type checkedFile struct {
	Path     string          `json:"path"`
	Name     string          `json:"name"`
	Status   skill.Status    `json:"status"`
	Tools    []string        `json:"tools"`
	Problems []skill.Problem `json:"problems"`
}

type skillCheck struct {
	Files    []checkedFile `json:"files"`
	Warnings []string      `json:"warnings"`
}

func (c *cli) checkSkills(agent string, paths []string) error {
	entries, warnings, err := c.skillsToCheck(agent, paths)
	if err != nil {
		return err
	}
	out := skillCheck{Files: make([]checkedFile, len(entries)), Warnings: append([]string{}, warnings...)}
	rejected := 0
	for i, e := range entries {
		out.Files[i] = checkedFile{
			Path: e.Path, Name: e.Name, Status: e.Status,
			Tools: append([]string{}, e.File.AllowedTools...), Problems: append([]skill.Problem{}, e.Problems...),
		}
		if e.Status == skill.Rejected {
			rejected++
		}
	}
	if err := c.print(out, func() string { return checkText(out) }); err != nil {
		return err
	}
	if rejected > 0 {
		return exitError{exitFailed, fmt.Errorf("%d of %d skills are rejected (see above)", rejected, len(entries))}
	}
	return nil
}

// skillsToCheck are those of the paths, or all of the agent's.
func (c *cli) skillsToCheck(agent string, paths []string) (entries []skill.Entry, warnings []string, err error) {
	if len(paths) == 0 {
		now, _, warnings, err := c.skillsOf(agent)
		return now.catalog.Entries, warnings, err
	}
	s, _, err := c.locate()
	if err != nil {
		return nil, nil, err
	}
	var wrong []error
	for _, p := range paths {
		files, err := s.skills.library.Find(p)
		wrong = append(wrong, err)
		for _, f := range files {
			entries = append(entries, skill.Read(sourceOf(f)))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, nil, usage(err)
	}
	return entries, nil, nil
}

func checkText(c skillCheck) string {
	var b strings.Builder
	count := map[skill.Status]int{}
	for _, f := range c.Files {
		count[f.Status]++
		for _, p := range f.Problems {
			fmt.Fprintf(&b, "%s: %s\n", p.Severity, p.In(f.Path))
		}
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	fmt.Fprintf(&b, "%d skills: %d ok, %d with warnings, %d rejected\n", len(c.Files), count[skill.OK], count[skill.Warned], count[skill.Rejected])
	return b.String()
}
