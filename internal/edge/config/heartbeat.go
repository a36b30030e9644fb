package config

import (
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"
	"goclaw"
)

// Cron are the settings of jobs that run by the clock.
type Cron struct {
	Enabled           bool   `json:"enabled" doc:"Whether this gateway fires jobs by the clock. They can be changed, and fired by hand, in any case. Default: true."`
	MaxConcurrentRuns int    `json:"maxConcurrentRuns,omitempty" range:"1..1000" doc:"Runs of all jobs that are under way at a time; what is due besides waits. Default: 4."`
	RunLog            RunLog `json:"runLog" doc:"The history of jobs."`
}

// RunLog is how much of the jobs' history is kept.
type RunLog struct {
	KeepLines int `json:"keepLines,omitempty" range:"20..1000000" doc:"How many of a job's newest firings stay on record; older ones are removed once an hour, except while their run has not ended. Default: 2000."`
}

// Heartbeat is a turn that an agent has by itself, every so often.
type Heartbeat struct {
	Every       string      `json:"every,omitempty" format:"duration" doc:"How often, such as 30m or 1h30m; 0m: never. Default: 0m."`
	ActiveHours ActiveHours `json:"activeHours" doc:"The hours of the day in which there are heartbeats. Default: all."`
	Model       string      `json:"model,omitempty" format:"model" doc:"provider/model, or an alias, of heartbeats. Default: the session's."`
	Prompt      string      `json:"prompt,omitempty" doc:"What the agent is told at each heartbeat. Default: to look after what HEARTBEAT.md lists."`
	Session     string      `json:"session,omitempty" format:"session" doc:"Whose turn a heartbeat is: main, or the key of another session of the agent. Default: main."`
}

// ActiveHours are hours of a day.
type ActiveHours struct {
	Start    string `json:"start,omitempty" format:"clock" doc:"From when on, such as 08:00. Default: 00:00."`
	End      string `json:"end,omitempty" format:"clock" doc:"Until when, such as 24:00; before start: of the next day. Default: 24:00."`
	Timezone string `json:"timezone,omitempty" format:"zone" doc:"The time zone of start and end. Default: the person's."`
}

// HeartbeatConfig is what holds for one agent's heartbeat.
type HeartbeatConfig struct {
	Every      time.Duration // 0: there is none
	Start, End string        // both empty: the whole day
	Timezone   string        // "": the person's
	Model      string        // provider/model; "": the session's
	Prompt     string        // "": the built-in one
	Session    goclaw.SessionKey
}

// Zone is the time zone of the heartbeat's hours, given the person's.
func (h HeartbeatConfig) Zone(person *time.Location) *time.Location {
	if zone, err := time.LoadLocation(h.Timezone); err == nil && h.Timezone != "" {
		return zone
	}
	return person
}

func (c Config) heartbeat(e AgentEntry) HeartbeatConfig {
	own, def := e.Heartbeat, c.Agents.Defaults.Heartbeat
	every, _ := time.ParseDuration(first(own.Every, def.Every, "0m")) // Load has checked it
	h := HeartbeatConfig{
		Every: every, Timezone: first(own.ActiveHours.Timezone, def.ActiveHours.Timezone),
		Start: first(own.ActiveHours.Start, def.ActiveHours.Start), End: first(own.ActiveHours.End, def.ActiveHours.End),
		Model: c.model(first(own.Model, def.Model)), Prompt: first(own.Prompt, def.Prompt),
		Session: goclaw.MainKey(e.ID),
	}
	// A key among the defaults is of one agent; the others keep their main.
	if key, err := goclaw.ParseSessionKey(first(own.Session, def.Session)); err == nil && key.Agent == e.ID {
		h.Session = key
	}
	return h
}

// The shortest and the longest time between two heartbeats.
const (
	minHeartbeat = time.Second
	maxHeartbeat = 366 * 24 * time.Hour
)

func (d *decoder) duration(v hujson.Value, s, key string) {
	every, err := time.ParseDuration(s)
	switch {
	case err != nil:
		d.problem(v.StartOffset, "write a length of time such as 30m or 1h30m, or 0m for never", "%s is %q", key, s)
	case every != 0 && (every < minHeartbeat || every > maxHeartbeat):
		d.problem(v.StartOffset, "use 1s to 8784h, or 0m for never", "%s is %q", key, s)
	}
}

func (d *decoder) clock(v hujson.Value, s, key string) {
	if _, err := time.Parse("15:04", s); (err != nil || len(s) != 5) && s != "24:00" || s == "24:00" && strings.HasSuffix(key, ".start") {
		d.problem(v.StartOffset, "write a time of day such as 08:00, up to 24:00 for the end", "%s is %q", key, s)
		return
	}
	d.refs = append(d.refs, ref{"clock", s, key, placeAt(d.src, v.StartOffset)})
}

func (d *decoder) session(v hujson.Value, s, key string) {
	k, err := goclaw.ParseSessionKey(s)
	switch {
	case s == "main":
	case err != nil:
		d.problem(v.StartOffset, "write main, or the whole key of a session", "%s: %v", key, err)
	case k.IsWorker():
		d.problem(v.StartOffset, "name the session of a person", "%s: %q is a worker's", key, s)
	default:
		d.refs = append(d.refs, ref{"session", s, key, placeAt(d.src, v.StartOffset)})
	}
}

// heartbeats checks what the parts of heartbeats come to.
func (d *decoder) heartbeats(cfg *Config) {
	for _, end := range d.refs {
		hours, ok := strings.CutSuffix(end.key, ".end")
		if ok && end.kind == "clock" && slices.ContainsFunc(d.refs, func(r ref) bool { return r.key == hours+".start" && r.value == end.value }) {
			d.refProblem(end, "write a later time, or leave activeHours out for the whole day", "%s: no time lies from %s to %s", hours, end.value, end.value)
		}
	}
	for _, e := range slices.Concat(cfg.Agents.List, cfg.Agents.Entries) {
		key, err := goclaw.ParseSessionKey(e.Heartbeat.Session)
		if err != nil || key.Agent == e.ID {
			continue
		}
		for _, r := range d.refs {
			if r.kind == "session" && r.value == e.Heartbeat.Session && !strings.HasPrefix(r.key, "agents.defaults.") {
				d.refProblem(r, "name one of its own", "%s: it is no session of the agent %q", r.key, e.ID)
			}
		}
	}
}
