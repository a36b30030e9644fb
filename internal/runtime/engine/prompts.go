package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
)

// maxPrompts bounds the prompts that are kept assembled.
const maxPrompts = 64

// prompts keeps what was assembled last for each profile: turn after turn the
// same prompt is wanted, as long as nobody changes a file.
type prompts struct {
	mu   sync.Mutex
	last map[string]assembled

	// hooked is what the hook was given and answered last, for each session and
	// profile.
	hooked map[string]hooked

	// said are the warnings that each session, or a workspace's workers, were
	// told last.
	said map[string]string
}

// assembled is a prompt, what it was made of, and how it is stored.
type assembled struct {
	from   ingredients
	prompt goclaw.Prompt        // shared: never changed
	system []goclaw.SystemBlock // the prompt rendered; shared as well
	blob   goclaw.Blob
}

// hooked is what a hook was given, and what it answered.
type hooked struct{ given, got []goclaw.Section }

// unsteady returns the first section in which a hook's answer differs from its
// last one, although it was given the same; "" if there is none.
func (c *prompts) unsteady(key string, given, got []goclaw.Section) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.hooked[key]
	if c.hooked == nil || len(c.hooked) >= maxPrompts {
		c.hooked = map[string]hooked{}
	}
	c.hooked[key] = hooked{given, got}
	if !known || !slices.Equal(last.given, given) {
		return ""
	}
	for i, s := range got {
		if i >= len(last.got) || last.got[i] != s {
			return s.ID
		}
	}
	if len(got) < len(last.got) {
		return last.got[len(got)].ID
	}
	return ""
}

// ingredients are what a prompt is made of besides its profile.
type ingredients struct {
	files    []goclaw.WorkspaceFile
	replaced map[string]prompt.Replacement
	skills   prompt.SkillList
	workers  []prompt.WorkerCard
	body     string
	warnings []string
}

func (i ingredients) equal(o ingredients) bool {
	return slices.Equal(i.files, o.files) && maps.Equal(i.replaced, o.replaced) && i.skills.Text == o.skills.Text &&
		slices.Equal(i.skills.Omitted, o.skills.Omitted) && slices.Equal(i.warnings, o.warnings) && i.body == o.body &&
		slices.EqualFunc(i.workers, o.workers, prompt.WorkerCard.Equal)
}

// assemble builds the prompt of a session's run from the files as they are now.
// body is that of the run's definition, "" if it has none.
func (e *Engine) assemble(ctx context.Context, session goclaw.SessionKey, p goclaw.Profile, body string) (assembled, error) {
	from, err := e.gather(session, p)
	if err != nil {
		return assembled{}, err
	}
	from.body = body
	made, err := e.prompts.make(promptKey(session, p), from, func() goclaw.Prompt {
		made := prompt.Assemble(prompt.Input{
			Profile: p, Session: session, Files: from.files, Tools: append(e.specs(p.Tools), p.Caller...), Skills: from.skills,
			Facts: e.o.Facts, Replaced: from.replaced, Body: from.body, Workers: from.workers,
		})
		made.Warnings = append(made.Warnings, from.warnings...)
		return made
	})
	if err != nil || e.o.Rewriter == nil {
		return made, err
	}
	sections, err := e.o.Rewriter.Rewrite(ctx, session, p, made.prompt.Sections)
	if err != nil {
		return assembled{}, err
	}
	changed := prompt.Rewritten(made.prompt, sections)
	if id := e.prompts.unsteady(session.String()+"\x00"+promptKey(session, p), made.prompt.Sections, changed.Sections); id != "" {
		changed.Warnings = append(slices.Clone(changed.Warnings), fmt.Sprintf(
			"context.hook answers differently each time, from section %s on, so no provider reads that from its cache; have it answer equal requests equally", id))
	}
	return finished(from, changed)
}

// gather reads what the prompt is to be made of.
func (e *Engine) gather(session goclaw.SessionKey, p goclaw.Profile) (from ingredients, err error) {
	if from.files, err = e.o.Files.Files(p.Workspace, p.Inherit); err != nil {
		return from, fmt.Errorf("read workspace %s: %w", p.Workspace, err)
	}
	if e.o.Sections != nil {
		strictly := ""
		if p.Strict {
			strictly = p.Workspace
		}
		if from.replaced, err = e.o.Sections.Texts(strictly); err != nil {
			return from, err
		}
		for _, id := range slices.Sorted(maps.Keys(from.replaced)) {
			if why := from.replaced[id].Unfit(id, p, p.Access(session, "")); why != "" {
				return from, errors.New(why)
			}
		}
	}
	if e.o.Skills != nil {
		if from.skills, from.warnings, err = e.o.Skills.List(p); err != nil {
			return from, fmt.Errorf("list skills: %w", err)
		}
	}
	if e.o.Rules.Definitions != nil && p.PromptMode != goclaw.PromptNone && slices.Contains(p.Tools, "sessions_spawn") {
		catalog := e.o.Rules.Definitions(p.Workspace)
		from.workers = definition.Cards(catalog.Spawnable(), e.o.Rules.Tools)
		from.warnings = append(from.warnings, catalog.Broken()...)
		if n := catalog.Untrusted(); n > 0 {
			from.warnings = append(from.warnings, fmt.Sprintf("%d of this workspace's definitions are not used: it is not trusted; look at them (goclaw agents list) and trust it with: goclaw trust %s", n, p.Workspace))
		}
	}
	return from, nil
}

func (e *Engine) specs(tools []string) []goclaw.ToolSpec {
	specs := make([]goclaw.ToolSpec, 0, len(tools))
	for _, name := range tools {
		if t := e.tools[name]; t != nil {
			specs = append(specs, t.Spec())
		}
	}
	return specs
}

// make returns what was made last of the same, or makes it.
func (c *prompts) make(key string, from ingredients, assemble func() goclaw.Prompt) (assembled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.last[key]; ok && a.from.equal(from) {
		return a, nil
	}
	a, err := finished(from, assemble())
	if err != nil {
		return assembled{}, err
	}
	if c.last == nil || len(c.last) >= maxPrompts {
		c.last = map[string]assembled{}
	}
	c.last[key] = a
	return a, nil
}

func finished(from ingredients, p goclaw.Prompt) (a assembled, err error) {
	a = assembled{from: from, prompt: p, system: prompt.Render(p)}
	if a.blob, err = blobOf("prompt", p); err != nil {
		return assembled{}, err
	}
	return a, nil
}

// promptKey names all that a prompt takes from a session and a profile.
func promptKey(session goclaw.SessionKey, p goclaw.Profile) string {
	var caller []string
	for _, t := range p.Caller {
		caller = append(caller, t.Name, t.Description, string(t.Schema))
	}
	return strings.Join([]string{
		string(session.Kind), p.Agent, p.Workspace, p.Model, p.Thinking, string(p.PromptMode), p.Definition,
		strings.Join(p.Tools, ","), strings.Join(p.Inherit, ","),
		strings.Join(caller, "\x00"),
	}, "\x00")
}

// withNotes adds the notes of today and yesterday to what a main session sees.
func (e *Engine) withNotes(session goclaw.SessionKey, p goclaw.Profile) goclaw.Profile {
	if !e.o.DailyNotes || session.IsWorker() {
		return p
	}
	now := time.Now().In(e.o.Zone)
	p.Inherit = slices.Clone(p.Inherit)
	for _, day := range []time.Time{now, now.AddDate(0, 0, -1)} {
		p.Inherit = append(p.Inherit, "memory/"+day.Format(time.DateOnly)+".md")
	}
	return p
}

// warn tells a prompt's warnings to the log and to the session's chat, once
// until they change.
func (e *Engine) warn(r goclaw.Run, warnings []string) {
	key := r.Session.String()
	if r.Session.IsWorker() {
		key = r.Profile.Workspace
	}
	text := strings.Join(warnings, "\n")
	e.prompts.mu.Lock()
	if e.prompts.said == nil || len(e.prompts.said) > 1000 {
		e.prompts.said = map[string]string{}
	}
	fresh := e.prompts.said[key] != text
	e.prompts.said[key] = text
	e.prompts.mu.Unlock()
	if !fresh {
		return
	}
	for _, w := range warnings {
		e.o.Log.Warn("context", "run", r.ID, "what", w)
		e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeWarning, Session: r.Session, RunID: r.ID, Text: w})
	}
}
