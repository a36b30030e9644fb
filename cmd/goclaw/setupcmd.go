package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/cmd/goclaw/setup"
	"goclaw/internal/edge/ask"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/secret"
)

// setupFlags are what a script says to goclaw setup.
type setupFlags struct {
	given    setup.Given
	keyStdin bool
	in       string // where the key is kept
	yes      bool
	silent   bool // --non-interactive
}

func (c *cli) setupCommand() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use: "setup", Short: "Choose a model and a key, try them, and lay out the agent's folder", Args: no,
		Long: "Asks which model is to answer and for its key, makes a test call, and writes goclaw.json.\n" +
			"Present settings are the defaults of a second run; comments in the file are kept; Ctrl-C\n" +
			"leaves everything as it was. The key goes into the system's keyring, or an age file where\n" +
			"there is none. With flags it works in scripts; there the key comes from standard input.",
		Example: "goclaw setup\npass show anthropic | goclaw setup --provider anthropic --key-stdin --yes --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.setup(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.given.Provider, "provider", "", strings.Join(setup.Providers(), ", "))
	fl.StringVar(&f.given.URL, "url", "", "address of the model's API")
	fl.StringVar(&f.given.Name, "name", "", "NAME of a compatible provider, before the / of its models")
	fl.BoolVar(&f.keyStdin, "key-stdin", false, "read the key from standard input")
	fl.StringVar(&f.in, "in", "", "where to keep the key: keyring or file (default: the keyring if there is one)")
	fl.StringVar(&f.given.OpenClaw, "openclaw", "", "what to do with OpenClaw's workspace: fresh, copy or share (default: fresh)")
	fl.BoolVar(&f.given.Insist, "force", false, "keep the settings though the test call fails")
	fl.BoolVarP(&f.yes, "yes", "y", false, "ask nothing: flags, present settings and defaults decide")
	fl.BoolVar(&f.silent, "non-interactive", false, "the same as --yes")
	return cmd
}

func (c *cli) setup(ctx context.Context, f setupFlags) (err error) {
	place, err := placeOf(f.in)
	if err != nil {
		return usage(err)
	}
	f.given.Model, f.given.Workspace = c.model, c.workspace
	c.model, c.workspace = "", "" // they are to be settled, not to go before
	alone := f.yes || f.silent || f.keyStdin
	if !alone && (!isTerminal(c.Stdin) || !isTerminal(c.Stderr)) {
		return usagef("setup asks questions on a terminal; in scripts use: goclaw setup --provider %s --key-stdin --yes", strings.Join(setup.Providers(), "|"))
	}
	job, err := c.prepareSetup(place)
	if err != nil {
		return err
	}
	if f.keyStdin {
		if isTerminal(c.Stdin) {
			return usagef("--key-stdin reads the key from a pipe or file; without it setup asks for the key unseen")
		}
		if f.given.Key, err = c.readSecret(ctx, ""); err != nil {
			return err
		}
		if err := secret.CheckValue(f.given.Key); err != nil {
			return usagef("--key-stdin: %w", err)
		}
	}
	out := setup.Outside{Getenv: c.Getenv, Models: offered, Try: func(ctx context.Context, e config.Endpoint, model string) error {
		c.hide.Add(e.APIKey.Reveal())
		return tryModel(ctx, e, model)
	}}
	if !alone {
		if out.Ask, err = ask.New(c.Stdin, c.Stderr); err != nil {
			return err
		}
		job.ask = out.Ask
	}
	chat, err := job.run(ctx, f.given, out)
	if out.Ask != nil {
		err = errors.Join(err, out.Ask.Close())
	}
	var wrong *setup.GivenError
	if errors.Is(err, setup.ErrNoOne) || errors.As(err, &wrong) {
		return usage(err)
	}
	if err != nil || !chat {
		return err
	}
	return c.chat(ctx, goclaw.MainKey(config.DefaultAgent))
}

// setupJob is one run of setup.
type setupJob struct {
	*cli
	home    home
	file    string // the configuration
	text    []byte // what it holds
	cfg     config.Config
	store   *secret.Store
	place   secret.Place
	present setup.Present
	ask     *ask.Asker
}

// prepareSetup looks at how things are. It makes nothing.
func (c *cli) prepareSetup(place secret.Place) (*setupJob, error) {
	h, err := c.homeOnly()
	if err != nil {
		return nil, err
	}
	j := &setupJob{cli: c, home: h, file: c.configFile(h), place: place, store: c.secretStore(h)}
	if j.cfg, err = config.Load(j.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%w\nmend the file first: setup changes it and does not write it anew", err)
	}
	if j.text, err = readConfig(j.file); err != nil {
		return nil, err
	}
	main, _ := j.cfg.Agent(config.DefaultAgent)
	dir, err := filepath.Abs(main.WorkspaceIn(string(h)))
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	j.present = setup.Present{
		Model: main.Model, Workspace: dir,
		OpenClaw: setup.FindOpenClaw(cmp.Or(c.Getenv("HOME"), c.Getenv("USERPROFILE"))),
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		j.present.Laid = true
	}
	j.present.ModelKey, j.present.WorkspaceKey = keysOfMain(j.cfg)
	if every, err := j.cfg.Show("agents.defaults.heartbeat.every"); err == nil {
		j.present.Heartbeat, _ = every.(string)
	}
	named := map[string]bool{}
	for _, p := range j.cfg.Models.Providers {
		named[p.Name] = true
	}
	for _, e := range j.cfg.Endpoints(c.Getenv, nil, c.lookup(j.store)) {
		if named[e.Name] {
			j.present.Endpoints = append(j.present.Endpoints, e)
		}
	}
	config.FromEnv(c.Getenv, func(base string) ([]string, bool) {
		names, answers := askOllama(base)
		if answers {
			j.present.Ollama = base
		}
		return names, answers
	})
	return j, nil
}

// keysOfMain are the keys that decide the main agent's model and workspace: its
// own where it has such, else those of all agents.
func keysOfMain(cfg config.Config) (model, workspace string) {
	model, workspace = "agents.defaults.model", "agents.defaults.workspace"
	own := func(at string, e config.AgentEntry) {
		if e.ID == config.DefaultAgent && e.Model != "" {
			model = at + ".model"
		}
		if e.ID == config.DefaultAgent && e.Workspace != "" {
			workspace = at + ".workspace"
		}
	}
	for i, e := range cfg.Agents.List {
		own(fmt.Sprintf("agents.list[%d]", i), e)
	}
	for _, e := range cfg.Agents.Entries {
		own("agents.entries."+e.ID, e)
	}
	return model, workspace
}

// setupDone is what setup --json prints.
type setupDone struct {
	Config    string        `json:"config"`
	Model     string        `json:"model"`
	Tried     bool          `json:"tried"` // the model answered
	Verdict   string        `json:"verdict"`
	Key       string        `json:"key"`              // none, new, environment or kept
	KeyIn     string        `json:"keyIn,omitempty"`  // keyring or file, of a new one
	Secret    string        `json:"secret,omitempty"` // its name
	Workspace string        `json:"workspace"`
	Changes   []setupChange `json:"changes"`
}

type setupChange struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"` // null: taken out
}

// run asks, shows what it will change, and does it. chat: the first chat is to
// begin.
func (j *setupJob) run(ctx context.Context, given setup.Given, out setup.Outside) (chat bool, err error) {
	plan, err := setup.Run(ctx, given, j.present, out)
	if err != nil {
		return false, err
	}
	changes, err := plan.Changes(j.present, filepath.Join(string(j.home), "workspace"))
	if err != nil {
		return false, err
	}
	changes = j.real(changes)
	if j.cfg.Schema == "" {
		changes = slices.Insert(changes, 0, config.Change{Key: "$schema", Value: json.RawMessage(`"./` + schemaName + `"`)})
	}
	text, err := config.Edit(j.file, j.text, changes...)
	if err != nil {
		return false, usage(err)
	}
	if j.ask != nil {
		j.show(plan, changes, text)
		sure, err := j.ask.Yes(ctx, "Do that?", true)
		if err != nil {
			return false, err
		}
		if !sure {
			return false, setup.ErrLeft
		}
	}
	done, err := j.apply(ctx, plan, text)
	if err != nil {
		return false, err
	}
	done.Changes = []setupChange{}
	for _, ch := range changes {
		done.Changes = append(done.Changes, setupChange{ch.Key, ch.Value})
	}
	if err := j.print(done, func() string { return j.summary(plan, done) }); err != nil || j.ask == nil || j.json {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(plan.Workspace, "BOOTSTRAP.md")); err == nil {
		j.ask.Say("The first chat begins with BOOTSTRAP.md: say hello, and agent and person get to know each other.")
	}
	return j.ask.Yes(ctx, "Begin it now?", true)
}

// real leaves out the changes that change nothing.
func (j *setupJob) real(changes []config.Change) []config.Change {
	return slices.DeleteFunc(changes, func(ch config.Change) bool {
		text, err := config.Edit(j.file, j.text, ch)
		return err == nil && bytes.Equal(text, j.text)
	})
}

// show tells what is about to be changed.
func (j *setupJob) show(plan setup.Plan, changes []config.Change, text []byte) {
	j.ask.Say("")
	if bytes.Equal(text, j.text) {
		j.ask.Say("%s stays as it is.", j.file)
	} else {
		j.ask.Say("%s:", j.file)
	}
	for _, ch := range changes {
		if ch.Value == nil {
			j.ask.Say("  %s is taken out", ch.Key)
			continue
		}
		j.ask.Say("  %s = %s", ch.Key, ch.Value)
	}
	switch {
	case plan.KeyFrom == setup.KeyNew && j.place == secret.File:
		j.ask.Say("The key is kept in %s as %q.", secret.File, plan.Name)
	case plan.KeyFrom == setup.KeyNew:
		j.ask.Say("The key is kept as %q in the system's keyring, or in %s where there is none.", plan.Name, secret.File)
	}
	switch {
	case plan.CopyFrom != "":
		j.ask.Say("%s is copied to %s.", plan.CopyFrom, plan.Workspace)
	case plan.Shared:
		j.ask.Say("%s is shared with OpenClaw; its own skills are used once you trust it (goclaw trust).", plan.Workspace)
	case !j.present.Laid || plan.Workspace != j.present.Workspace:
		j.ask.Say("The agent's folder %s is laid out, if it is fresh.", plan.Workspace)
	}
}

// apply does what is planned: the key first, because the configuration names
// it; it is taken back if the rest fails.
func (j *setupJob) apply(ctx context.Context, plan setup.Plan, text []byte) (done setupDone, err error) {
	if err := j.home.prepare(); err != nil {
		return done, err
	}
	done = setupDone{Config: j.file, Model: plan.Model, Tried: plan.Tried, Verdict: plan.Verdict, Key: plan.KeyFrom, Workspace: plan.Workspace}
	if plan.KeyFrom == setup.KeyNew {
		kept, takeBack, err := j.keep(ctx, plan)
		if err != nil {
			return done, err
		}
		done.KeyIn, done.Secret = string(kept), plan.Name
		if err := j.write(plan, text); err != nil {
			return done, errors.Join(err, takeBack())
		}
	} else if err := j.write(plan, text); err != nil {
		return done, err
	}
	s, cfg, err := j.locate()
	if err == nil {
		err = j.settle(&s, cfg)
	}
	if err != nil {
		return done, err
	}
	_, err = prepareWorkspace(s.rules.Agents[config.DefaultAgent], s.trust, time.Now())
	return done, err
}

// write puts the files in their places.
func (j *setupJob) write(plan setup.Plan, text []byte) error {
	if plan.CopyFrom != "" {
		if err := setup.CopyWorkspace(plan.CopyFrom, plan.Workspace); err != nil {
			return err
		}
	}
	if err := writeSchema(j.file); err != nil {
		return err
	}
	if bytes.Equal(text, j.text) {
		return nil
	}
	return writeConfig(j.file, text)
}

// keep stores the key; a keyring that fails is told, and the file offered.
func (j *setupJob) keep(ctx context.Context, plan setup.Plan) (kept secret.Place, takeBack func() error, err error) {
	takeBack = func() error { return j.store.Remove(context.WithoutCancel(ctx), plan.Name) }
	if was, in, err := j.store.Get(ctx, plan.Name); err == nil {
		takeBack = func() error {
			_, err := j.store.Set(context.WithoutCancel(ctx), plan.Name, was, in)
			return err
		}
	}
	kept, err = j.store.Set(ctx, plan.Name, plan.Key, j.place)
	var failed *secret.RingError
	if err == nil || !errors.As(err, &failed) || j.ask == nil {
		return kept, takeBack, ringHint(err, "goclaw setup --in file")
	}
	j.ask.Say("%s.", failed)
	file, err := j.ask.Yes(ctx, "Keep the key in the age file secrets.age instead?", true)
	if err == nil && !file {
		err = setup.ErrLeft
	}
	if err != nil {
		return "", nil, err
	}
	kept, err = j.store.Set(ctx, plan.Name, plan.Key, secret.File)
	return kept, takeBack, err
}

func (j *setupJob) summary(plan setup.Plan, done setupDone) string {
	var b strings.Builder
	if !done.Tried {
		fmt.Fprintf(&b, "Not tried with success: %s\n", done.Verdict)
	}
	fmt.Fprintf(&b, "Set up: %s, in %s.\n", done.Model, done.Config)
	switch plan.KeyFrom {
	case setup.KeyNew:
		fmt.Fprintf(&b, "The key is kept in %s as %q.%s\n", secret.Place(done.KeyIn), done.Secret, ringNote(j.place, secret.Place(done.KeyIn)))
	case setup.KeyEnv:
		fmt.Fprintf(&b, "The key comes from %s, which must be set wherever goclaw runs.\n", plan.KeyVar)
	}
	fmt.Fprintf(&b, "The agent's folder is %s.", done.Workspace)
	if _, running := j.home.findListener(); running {
		b.WriteString("\nA running gateway takes all this with its next start.")
	}
	return b.String()
}

const schemaName = "goclaw.schema.json"

// writeSchema puts the schema beside a configuration file, for editors.
func writeSchema(file string) error {
	path := filepath.Join(filepath.Dir(file), schemaName)
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, config.Schema()) {
		return nil
	}
	return writeConfig(path, config.Schema())
}

// offered asks an OpenAI-compatible server for its models.
func offered(ctx context.Context, e config.Endpoint) ([]string, bool) {
	return listModels(ctx, e.BaseURL, e.APIKey.Reveal())
}

// testPatience is how long a test call may take: a local model may have to be
// loaded first.
const testPatience = time.Minute

// tryModel makes one short call as every turn would.
func tryModel(ctx context.Context, e config.Endpoint, model string) error {
	p, err := provider(e)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, testPatience)
	defer cancel()
	// Room to think, for models that do so unasked.
	const room = 512
	_, err = p.Stream(call, goclaw.ModelRequest{
		Model: model, MaxTokens: room,
		Messages: []goclaw.Message{{Role: goclaw.RoleUser, Parts: []goclaw.Part{{Kind: goclaw.PartText, Text: "Answer with the one word OK."}}}},
	}, nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
