package main

import (
	"log/slog"

	"goclaw/internal/edge/config"
	"goclaw/internal/runtime/cron"
	"goclaw/internal/runtime/engine"
	"goclaw/internal/runtime/gateway"
)

// clock is what the configuration says of jobs and heartbeats.
type clock struct {
	enabled   bool
	maxActive int
	keep      int
	beats     []cron.Heartbeat
}

// addClock settles jobs and heartbeats; the agents are settled.
func (s *settings) addClock(cfg config.Config) {
	s.clock = clock{enabled: cfg.Cron.Enabled, maxActive: cfg.Cron.MaxConcurrentRuns, keep: cfg.Cron.RunLog.KeepLines}
	s.prompting.facts.Heartbeats = map[string]string{}
	for _, a := range cfg.AllAgents() {
		h := a.Heartbeat
		if h.Every == 0 {
			continue
		}
		s.prompting.facts.Heartbeats[a.ID] = gateway.Brief(h.Every)
		s.clock.beats = append(s.clock.beats, cron.Heartbeat{
			Agent: a.ID, Workspace: s.rules.Agents[a.ID].Workspace, Every: h.Every,
			Start: h.Start, End: h.End, Zone: h.Zone(cfg.Zone()),
			Session: h.Session, Model: h.Model, Prompt: h.Prompt,
		})
	}
}

// service keeps the crontab of a store.
func (c clock) service(store cron.Store, e *engine.Engine, s settings, log *slog.Logger) (*cron.Service, error) {
	return cron.New(cron.Options{
		Store: store, Runner: e, Zone: s.prompting.zone, Agents: s.agentIDs(), Enabled: c.enabled, MaxActive: c.maxActive, Keep: c.keep,
		Heartbeats: c.beats, Files: s.prompting.loader, Log: log,
	})
}
