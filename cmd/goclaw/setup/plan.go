package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"goclaw/internal/edge/ask"
	"goclaw/internal/edge/config"
)

// Given is what the command line says; empty fields are open questions.
type Given struct {
	Provider  string // anthropic, openai, compatible, ollama or demo
	URL       string
	Name      string // of a compatible provider, as it stands before the / of its models
	Key       string // from standard input
	Model     string
	Workspace string
	OpenClaw  string // fresh, copy or share
	Insist    bool   // keep what the test call refuses
}

// Present is how things are before.
type Present struct {
	Endpoints []config.Endpoint // of the configuration file, with their keys opened
	Model     string            // the main agent's provider/model; "" if the file names none
	Workspace string            // of the main agent, absolute

	ModelKey, WorkspaceKey string // the keys that decide them

	Laid      bool   // the workspace is there already
	OpenClaw  string // OpenClaw's workspace; "" if there is none
	Ollama    string // the address of a local Ollama
	Heartbeat string // how often, as the file has it; "" if it says nothing
}

// Outside is what the wizard does in the world.
type Outside struct {
	Ask    *ask.Asker // nil: nobody can be asked
	Getenv func(string) string
	// Models lists what an OpenAI-compatible server offers; ok is false if it
	// can't be asked.
	Models func(ctx context.Context, e config.Endpoint) (names []string, ok bool)
	// Try makes one short call.
	Try func(ctx context.Context, e config.Endpoint, model string) error
}

// Where a key comes from.
const (
	KeyNone  = "none"        // the provider needs none
	KeyNew   = "new"         // it was given now
	KeyEnv   = "environment" // it stays in the environment
	KeyAsWas = "kept"        // the configuration has it already
)

// Plan is what is to be done.
type Plan struct {
	Provider string // anthropic, openai, compatible, ollama or demo
	Name     string // of the provider
	Kind     string
	URL      string
	Key      string // the key itself, if it is new
	KeyFrom  string
	KeyVar   string // the variable that holds it
	Model    string // provider/model

	Tried   bool   // the model answered
	Verdict string // what the test call showed

	Workspace string // absolute; what the configuration shall say
	CopyFrom  string // the workspace that is copied there
	Shared    bool   // the workspace is another program's
	Heartbeat string // every so long; "" leaves the key alone
}

// ErrNoOne says that a question is open and nobody can be asked.
var ErrNoOne = errors.New("nobody can be asked here")

// GivenError is what is wrong with the command line, or with an answer.
type GivenError struct{ Text string }

func (e *GivenError) Error() string { return e.Text }

func wrong(format string, args ...any) error { return &GivenError{fmt.Sprintf(format, args...)} }

func missing(flag, what string) error {
	return fmt.Errorf("%w: give %s with %s", ErrNoOne, what, flag)
}

// Changes are the keys of the configuration that the plan changes. standard is
// the workspace that holds without being configured.
func (p Plan) Changes(present Present, standard string) ([]config.Change, error) {
	var changes []config.Change
	var bad error
	set := func(key string, value any) {
		raw, err := json.Marshal(value)
		bad = errors.Join(bad, err)
		changes = append(changes, config.Change{Key: key, Value: raw})
	}
	unset := func(key string) { changes = append(changes, config.Change{Key: key}) }
	set(present.ModelKey, p.Model)
	if p.Workspace != present.Workspace {
		if p.Workspace == standard {
			unset(present.WorkspaceKey)
		} else {
			set(present.WorkspaceKey, p.Workspace)
		}
	}
	if p.Heartbeat != "" && p.Heartbeat != present.Heartbeat {
		set(heartbeatKey, p.Heartbeat)
	}
	if p.Provider == "demo" {
		return changes, bad
	}
	at := "models.providers." + p.Name
	// As one value: on the way there a provider without its kind would be wrong.
	entry := map[string]any{}
	if p.Kind != p.Name {
		entry["kind"] = p.Kind
	}
	if p.URL != "" {
		entry["baseURL"] = p.URL
	}
	switch p.KeyFrom {
	case KeyNew:
		entry["apiKey"] = map[string]string{"secret": p.Name}
	case KeyEnv:
		entry["apiKeyEnv"] = p.KeyVar
	}
	if !present.has(p.Name) {
		set(at, entry)
		return changes, bad
	}
	for _, key := range []string{"kind", "baseURL", "apiKeyEnv", "apiKey"} {
		value, given := entry[key]
		switch {
		case given:
			set(at+"."+key, value)
		case key == "baseURL", key != "kind" && p.KeyFrom != KeyAsWas:
			unset(at + "." + key)
		}
	}
	return changes, bad
}

const heartbeatKey = "agents.defaults.heartbeat.every"

// has reports whether the configuration file has that provider.
func (p Present) has(name string) bool {
	_, ok := p.endpoint(name)
	return ok
}

func (p Present) endpoint(name string) (config.Endpoint, bool) {
	for _, e := range p.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return config.Endpoint{}, false
}
