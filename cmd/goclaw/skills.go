package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"goclaw"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/skill"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/skills"
	"goclaw/internal/edge/tool/exec/sandbox"
	"goclaw/internal/edge/trust"
)

// skillset joins the folders of skills with what they mean. It is safe for
// concurrent use.
type skillset struct {
	library  *skills.Library
	facts    skill.Facts
	disabled []string
	limits   skill.Limits

	mu     sync.Mutex
	read   map[string]skillStock // by workspace
	worded map[string]wording    // by workspace
}

// wording is a list and what it was made of.
type wording struct {
	tree *skills.Tree
	why  string // of each choice
	list prompt.SkillList
}

// skillStock is what a workspace's agent has.
type skillStock struct {
	tree    *skills.Tree
	catalog skill.Catalog
	files   map[string]skills.File // by path
}

// newSkillset does no I/O.
func newSkillset(h home, t *trust.Store, cfg config.Skills, getenv func(string) string) *skillset {
	return &skillset{
		library: skills.New(skills.Options{Home: string(h), Extra: cfg.ExtraDirs, Trusted: t.Trusted}),
		facts: skill.Facts{
			OS: runtime.GOOS, Bin: commandsFind,
			Env: func(name string) bool { return getenv(name) != "" },
		},
		disabled: cfg.Disabled,
		limits:   skill.Limits{Count: cfg.Limits.MaxSkillsInPrompt, Chars: cfg.Limits.MaxSkillsPromptChars},
		read:     map[string]skillStock{}, worded: map[string]wording{},
	}
}

// commandsFind reports whether exec's commands find a program, which is not
// always what GoClaw itself would find.
func commandsFind(name string) bool {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return false
	}
	return slices.ContainsFunc(strings.Split(sandbox.Path, ":"), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

// stock reads a workspace's skills, if they have changed.
func (s *skillset) stock(workspace string) skillStock {
	tree := s.library.Scan(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.read[workspace]; ok && old.tree == tree {
		return old
	}
	now := skillStock{tree: tree, files: make(map[string]skills.File, len(tree.Files))}
	sources := make([]skill.Source, len(tree.Files))
	for i, f := range tree.Files {
		sources[i] = sourceOf(f)
		now.files[f.Path] = f
	}
	now.catalog = skill.Build(sources)
	for i := range now.catalog.Entries {
		now.catalog.Entries[i].File.Body = "" // the tree has it
	}
	s.read[workspace] = now
	return now
}

func sourceOf(f skills.File) skill.Source {
	return skill.Source{
		Path: f.Path, Folder: f.Folder, Scope: f.Scope, Rank: f.Rank, Location: f.Location,
		Data: f.Data, Refused: f.Refused, Hint: f.Hint, Untrusted: f.Untrusted,
	}
}

// choose applies a profile's list of names to what there is.
func (s *skillset) choose(p goclaw.Profile) (skillStock, []skill.Choice, []string) {
	now := s.stock(p.Workspace)
	source := "skills of agent " + p.Agent
	if p.PromptMode != goclaw.PromptFull {
		source = "skills of the worker"
	}
	choices, warnings := now.catalog.Choose(skill.Policy{Names: p.Skills, Source: source, Disabled: s.disabled}, s.facts)
	return now, choices, warnings
}

// List implements engine.Skills. A session that may know of none costs no look
// at the disk.
func (s *skillset) List(p goclaw.Profile) (prompt.SkillList, []string, error) {
	if p.Skills != nil && len(p.Skills) == 0 {
		return prompt.SkillList{}, nil, nil
	}
	now, choices, warnings := s.choose(p)
	if p.PromptMode == goclaw.PromptFull {
		warnings = append(now.warnings(), warnings...)
	}
	return s.word(p.Workspace, now.tree, choices), warnings, nil
}

// word lists the choices, by what it worded last for the workspace if they are
// the same.
func (s *skillset) word(workspace string, tree *skills.Tree, choices []skill.Choice) prompt.SkillList {
	var why strings.Builder
	for _, c := range choices {
		why.WriteString(c.Why + "\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.worded[workspace]; w.tree == tree && w.why == why.String() {
		return w.list
	}
	w := wording{tree, why.String(), skill.List(choices, s.limits)}
	s.worded[workspace] = w
	return w.list
}

// warnings are what the agent's person should know of the files.
func (s skillStock) warnings() []string {
	warnings := slices.Clone(s.tree.Warnings)
	for _, e := range s.catalog.Entries {
		for _, p := range e.Problems {
			if p.Severity == skill.Error && !e.Untrusted {
				warnings = append(warnings, "skill rejected: "+p.In(e.Path))
			}
		}
	}
	if line := s.untrusted(); line != "" {
		warnings = append(warnings, line)
	}
	return warnings
}

// untrusted says that skills of the workspace are not used, if so it is.
func (s skillStock) untrusted() string {
	n := 0
	for _, e := range s.catalog.Entries {
		if e.Untrusted && e.Status != skill.Rejected {
			n++
		}
	}
	dir := s.tree.Workspace
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("a skill of this workspace is not used: the workspace is not trusted; look at it, then: goclaw trust %s", dir)
	}
	return fmt.Sprintf("%d skills of this workspace are not used: the workspace is not trusted; look at them, then: goclaw trust %s", n, dir)
}

// Shelves are the folders of the skills that a profile may use and that lie
// outside its workspace.
func (s *skillset) Shelves(p goclaw.Profile) []goclaw.Shelf {
	if p.Skills != nil && len(p.Skills) == 0 {
		return nil
	}
	now, choices, _ := s.choose(p)
	var shelves []goclaw.Shelf
	for _, c := range choices {
		if !c.In {
			continue
		}
		if shelf, ok := now.tree.Shelf(now.files[c.Path], p.Workspace); ok {
			shelves = append(shelves, shelf)
		}
	}
	return shelves
}
