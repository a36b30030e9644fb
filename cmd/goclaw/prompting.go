package main

import (
	"time"

	"goclaw/internal/core/budget"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/contexthook"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/engine"
)

// prompting is what the configuration says of prompts.
type prompting struct {
	files      workspace.Options
	loader     *workspace.Loader // of files
	sections   map[string]string // files of the person's own, by section id
	hook       *contexthook.Hook // nil for none
	facts      prompt.Facts      // those that hold for the person
	dailyNotes bool
	zone       *time.Location
}

// addPrompting settles what prompts are made of.
func (s *settings) addPrompting(c *cli, cfg config.Config) {
	s.prompting = prompting{
		files:    workspace.Options{FileMaxChars: cfg.Context.FileMaxChars, TotalMaxChars: cfg.Context.TotalMaxChars},
		sections: cfg.Context.Sections, dailyNotes: cfg.Context.DailyNotes, zone: cfg.Zone(),
		facts: prompt.Facts{
			Owner: cfg.Context.Owner, Zone: cfg.Agents.Defaults.UserTimezone,
			Aliases: cfg.Models.Aliases, Docs: cfg.Context.Docs,
		},
	}
	s.prompting.loader = workspace.NewLoader(s.prompting.files)
	if h := cfg.Context.Hook; len(h.Command) > 0 {
		s.prompting.hook = contexthook.New(contexthook.Options{
			Command: h.Command, Timeout: time.Duration(h.TimeoutSeconds) * time.Second,
			Home: string(s.home), Getenv: c.Getenv,
		})
	}
}

// addWindows settles how many tokens models take.
func (s *settings) addWindows(cfg config.Config) error {
	windows, err := budget.NewWindows(cfg.Models.Windows)
	if err != nil {
		return err
	}
	s.rules.Window = windows.Of
	return nil
}

// into gives the engine what prompts are made of. host and system are facts of
// this process.
func (p prompting) into(o *engine.Options, host, system string) {
	o.Files = p.loader
	o.Notes, o.DailyNotes, o.Zone = workspace.Notes{}, p.dailyNotes, p.zone
	o.Facts = p.facts
	o.Facts.Host, o.Facts.OS = host, system
	if len(p.sections) > 0 {
		o.Sections = replacements{workspace.NewSections(p.sections)}
	}
	if p.hook != nil {
		o.Rewriter = p.hook
	}
}

// replacements gives the engine the person's own sections.
type replacements struct{ files *workspace.Sections }

func (s replacements) Texts(workspace string) (map[string]prompt.Replacement, error) {
	texts, err := s.files.Texts(workspace)
	if err != nil {
		return nil, err
	}
	replaced := make(map[string]prompt.Replacement, len(texts))
	for id, t := range texts {
		replaced[id] = prompt.Replacement(t)
	}
	return replaced, nil
}
