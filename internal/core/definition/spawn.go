package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/prompt"
)

// Spec is what a run takes from its definition. It is stored with the run, so
// that an edit of the file changes only later spawns.
type Spec struct {
	Name     string             `json:"name"`
	Path     string             `json:"path"`
	Body     string             `json:"body"`
	SHA256   string             `json:"sha256"` // of Body
	Tools    Tools              `json:"tools"`  // for the rules on calls
	Findings bool               `json:"findings,omitempty"`
	Typed    Typed              `json:"typed"`
	Input    json.RawMessage    `json:"input,omitempty"`
	Slices   []goclaw.SliceText `json:"slices,omitempty"`

	Temperature *float64 `json:"temperature,omitempty"`
}

// Spec returns what a run of d takes from it.
func (d Definition) Spec() Spec {
	return Spec{
		Name: d.Name, Path: d.Path, Body: d.Body, SHA256: d.SHA256, Tools: d.Tools,
		Findings: d.EmitFindings, Typed: d.Typed, Temperature: d.Temperature,
	}
}

// definition finds what the spawn names, nil if it names nothing.
func (r Rules) definition(q goclaw.SpawnRequest, target Agent) (*Definition, *goclaw.SpawnReply) {
	if q.Agent == "" {
		return nil, nil
	}
	fail := func(format string, args ...any) (*Definition, *goclaw.SpawnReply) {
		return nil, refuse(goclaw.Failed(fmt.Sprintf(format, args...)))
	}
	if r.Definitions == nil {
		return fail("no definition %q exists; leave agent out to spawn a plain worker", q.Agent)
	}
	catalog := r.Definitions(target.Workspace)
	d, ok := catalog.Find(q.Agent)
	switch {
	case !ok:
		return fail("no definition %q exists (there are: %s); leave agent out to spawn a plain worker", q.Agent, names(catalog.Spawnable()))
	case d.Status == StatusRejected || d.Status == StatusDegraded:
		return fail("the definition %q can't be spawned: %s", d.Name, d.Blocked())
	case !d.Trusted:
		return nil, refuse(goclaw.Forbidden(fmt.Sprintf("the definition %q comes with a workspace that its person does not trust yet (%s); they trust it with: goclaw trust %s", d.Name, d.Path, target.Workspace)))
	case d.Visibility == "internal":
		return nil, refuse(goclaw.Forbidden(fmt.Sprintf("the definition %q is internal: agents can't spawn it", d.Name)))
	case d.Mode == "primary":
		return nil, refuse(goclaw.Forbidden(fmt.Sprintf("the definition %q has mode: primary: it is no worker", d.Name)))
	}
	return &d, nil
}

// Spawnable lists the definitions that an agent may spawn now, by name.
func (c Catalog) Spawnable() []Definition {
	var all []Definition
	for _, d := range c.Active() {
		if d.Trusted && d.Blocked() == "" && d.Visibility != "internal" && d.Mode != "primary" {
			all = append(all, d)
		}
	}
	return all
}

// Untrusted counts the files of a workspace that its person does not trust.
func (c Catalog) Untrusted() int {
	n := 0
	for _, d := range c.All() {
		if !d.Trusted {
			n++
		}
	}
	return n
}

// Broken says of each file that is rejected what is wrong, for its person.
// Files that are not trusted are not used anyway.
func (c Catalog) Broken() []string {
	var lines []string
	for _, d := range c.All() {
		if d.Status == StatusRejected && d.Trusted {
			lines = append(lines, "definition: "+d.Blocked())
		}
	}
	return lines
}

func names(all []Definition) string {
	if len(all) == 0 {
		return "none"
	}
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = d.Name
	}
	return strings.Join(out, ", ")
}

// workerModel chooses the model: the spawn's, else the definition's, else the
// fallback. A bare name of another vendor in a definition (sonnet, gpt-5) that
// nothing here answers to gives the fallback, and a note that says so.
func (r Rules) workerModel(q goclaw.SpawnRequest, d *Definition, from Requester, fallback string) (model, note string, err error) {
	wanted := ""
	if d != nil {
		wanted = cmp.Or(d.Model, d.ModelRole)
		switch strings.ToLower(wanted) {
		case "inherit":
			wanted, fallback = "", from.Profile.Model
		case "main":
			wanted = ""
		}
	}
	if q.Model != "" || wanted == "" {
		model, err = r.ResolveModel(first(q.Model, fallback))
		return model, "", err
	}
	model, err = r.ResolveModel(wanted)
	if err == nil || strings.Contains(wanted, "/") {
		if err != nil {
			err = fmt.Errorf("definition %s: %w", d.Path, err)
		}
		return model, "", err
	}
	if model, err = r.ResolveModel(fallback); err != nil {
		return "", "", err
	}
	return model, fmt.Sprintf("its definition asks for the model %q, which nothing here answers to, so it uses %s; models.aliases can give that name a meaning", wanted, model), nil
}

// What holds for workers whose definition says nothing of it (spec section 8).
const (
	handoffPercent = 60
	handoffTokens  = 120_000
	maxHandoffs    = 3
)

// handoff is the smaller of a share of the model's window (0: unknown) and a
// number of tokens.
func (d *Definition) handoff(window int) goclaw.Handoff {
	percent, tokens, h := handoffPercent, handoffTokens, goclaw.Handoff{Max: maxHandoffs}
	if d != nil {
		l := d.Typed.Limits
		percent, tokens = cmp.Or(l.ContextPercent, percent), cmp.Or(l.ContextTokens, tokens)
		h.Fail = l.OnLimit == "fail"
		if l.MaxHandoffs != nil {
			h.Max = *l.MaxHandoffs
		}
	}
	h.Tokens = tokens
	if share := window * percent / 100; share > 0 {
		h.Tokens = min(h.Tokens, share)
	}
	return h
}

func (d *Definition) thinking() string {
	if d == nil {
		return ""
	}
	return first(d.Thinking, d.Effort)
}

// into sets what the definition says of a worker's profile.
func (d *Definition) into(p *goclaw.Profile) {
	p.Definition, p.DefinitionSHA, p.PromptMode = d.Name, d.SHA256, d.PromptMode()
	p.MaxCalls = d.MaxTurns
	if d.Typed.Output != nil {
		p.Answer = d.Typed.Output.Format
	}
	if d.Typed.Inherit != nil {
		p.Inherit = d.Typed.Inherit
	}
	if d.Skills != nil {
		p.Skills = d.Skills
	}
	if d.Typed.Limits.ResultTokens != nil {
		p.ResultTokens = *d.Typed.Limits.ResultTokens
	}
}

// Cards describes the definitions that a requester may spawn, for its prompt.
// tools are those there are.
func Cards(all []Definition, tools []string) []prompt.WorkerCard {
	cards := make([]prompt.WorkerCard, len(all))
	for i, d := range all {
		example, err := json.Marshal(struct {
			Agent   string          `json:"agent"`
			Task    string          `json:"task"`
			Context string          `json:"context"`
			Input   json.RawMessage `json:"input,omitempty"`
		}{d.Name, "…", "what it would otherwise have to find out", d.exampleInput()})
		if err != nil {
			example = []byte(d.Name)
		}
		cards[i] = prompt.WorkerCard{
			Name: d.Name, Description: strings.Join(strings.Fields(d.Description), " "),
			Tools: filter(tools, Policy{Allow: d.ResolvedTools()}), Example: string(example),
		}
		if gone := d.lacks(tools); len(gone) > 0 {
			cards[i].Description += " (It asks for tools that are not here: " + strings.Join(gone, ", ") + ".)"
		}
		if d.TimeoutSeconds != nil {
			cards[i].TimeoutSeconds = *d.TimeoutSeconds
		}
	}
	return cards
}

// lacks lists the tools that the file names and that there are not.
func (d Definition) lacks(tools []string) []string {
	if d.Tools.Allow == nil {
		return nil
	}
	return slices.DeleteFunc(d.ResolvedTools(), func(t string) bool { return slices.Contains(tools, t) })
}

// exampleInput has the fields that the input must have.
func (d Definition) exampleInput() json.RawMessage {
	var schema struct{ Required []string }
	if d.Typed.Input == nil || json.Unmarshal(d.Typed.Input, &schema) != nil || len(schema.Required) == 0 {
		return nil
	}
	example := map[string]string{}
	for _, name := range schema.Required {
		example[name] = "…"
	}
	raw, err := json.Marshal(example)
	if err != nil {
		return nil
	}
	return raw
}
