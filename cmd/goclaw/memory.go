package main

import (
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/recall/postgres"
	"goclaw/internal/edge/recall/sqlite"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/recall"
)

// addMemory settles who embeds what is remembered.
func (s *settings) addMemory(c *cli, cfg config.Config) error {
	if cfg.Memory.Embedding == "" {
		return nil
	}
	name, model, _ := strings.Cut(cfg.Memory.Embedding, "/")
	for _, e := range cfg.Endpoints(c.Getenv, nil, s.secrets) {
		if e.Name != name {
			continue
		}
		if e.Unsupported {
			return fmt.Errorf("memory.embedding: %s", e.Note)
		}
		if e.Kind != "openai" {
			return fmt.Errorf("memory.embedding: provider %s is of kind %s; name a model of one that speaks OpenAI's API", name, e.Kind)
		}
		s.embedder = openai.NewEmbedder(openai.Options{
			Name: e.Name, APIKey: e.APIKey.Reveal(), BaseURL: e.BaseURL, HTTPClient: withHeaders(e.Headers), IdleTimeout: e.IdleTimeout,
		}, model)
		return nil
	}
	return fmt.Errorf("memory.embedding: no provider %q is configured; add it to models.providers", name)
}

// newMemory wires the agents' memory. Its index lies beside the record: in a file
// of the home, or in the same PostgreSQL database.
func (a *app) newMemory() *recall.Memory {
	s := a.settings
	o := recall.Options{
		Files: workspace.Memories{}, Record: a.store, Workspaces: map[string]string{}, Zone: s.prompting.zone, Log: a.log,
	}
	for id, agent := range s.rules.Agents {
		o.Workspaces[id] = agent.Workspace
	}
	if s.shared() {
		o.Index = postgres.New(s.databaseURL.Reveal(), a.log)
	} else {
		o.Index = sqlite.New(s.home.path("memory.db"), a.log)
	}
	if s.embedder != nil {
		o.Embedder = s.embedder
	}
	return recall.New(o)
}

// remind tells the memory when a turn has ended.
func (a *app) remind(n goclaw.Notice) {
	if n.Kind == goclaw.NoticeRun && n.Run != nil && n.Run.State.Ended() && !n.Session.IsWorker() {
		a.memory.Wake()
	}
}
