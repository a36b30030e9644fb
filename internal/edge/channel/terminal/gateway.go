package terminal

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"goclaw"
)

// refreshEvery is the least time between two questions for what changes
// without a notice: places in the queue, and whether models may be called.
const refreshEvery = 2 * time.Second

// maxTakeovers bounds the takeovers that are told one by one.
const maxTakeovers = 8

// drifting reports whether what is shown may change without a notice.
func (s *state) drifting() bool {
	return s.stale || s.paused.At != 0 ||
		slices.ContainsFunc(s.workers, func(w *worker) bool { return w.run.Status == goclaw.StateQueued })
}

// refresh asks for what may have changed, if it is time to.
func (s *state) refresh() []effect {
	if !s.loaded || s.refreshing || s.link != nil || !s.drifting() || s.now.Before(s.refreshed.Add(refreshEvery)) {
		return nil
	}
	s.stale, s.refreshing = false, true
	return []effect{refreshEffect{}}
}

// refreshedBy takes the answer. It may be older than the newest notice, so
// that it tells no more of the workers than their places in the queue. An
// error changes nothing: whether the gateway is there, the notices tell.
func (s *state) refreshedBy(m refreshedMsg) {
	s.refreshing, s.refreshed = false, s.now
	if m.err != nil {
		return
	}
	for _, r := range m.workers {
		if w := s.worker(r.RunID); w != nil && w.run.Status == goclaw.StateQueued {
			w.run.Position = r.Position
		}
	}
	s.learn(m.status)
}

// learn takes what the gateway says of itself.
func (s *state) learn(st goclaw.Status) {
	s.paused = st.Paused
	if st.Parked > s.parked {
		s.note(count(st.Parked, "result") + " could not be delivered: /subagents parked")
	}
	s.parked = st.Parked
	var here []goclaw.RunInfo
	others := 0
	for _, r := range st.Recovered {
		switch {
		case r.SessionKey == s.session || s.worker(r.RunID) != nil:
			here = append(here, r)
		case s.fresh(r):
			others++
		}
	}
	s.tellTakeovers(here...)
	if others > 0 {
		s.note("resumed after a restart: " + count(others, "run") + " of other chats")
	}
}

// fresh reports whether r was taken over more often than was known, which is
// known from now on.
func (s *state) fresh(r goclaw.RunInfo) bool {
	if r.Recovery == nil || r.Status.Ended() || r.Recovery.Times <= s.told[r.RunID] {
		return false
	}
	s.told[r.RunID] = r.Recovery.Times
	return true
}

// knowTakeovers makes old news of what happened to runs before the gateway
// started: of what recovered does not list.
func (s *state) knowTakeovers(runs, recovered []goclaw.RunInfo) {
	for _, r := range runs {
		if !slices.ContainsFunc(recovered, func(n goclaw.RunInfo) bool { return n.RunID == r.RunID }) {
			s.fresh(r)
		}
	}
}

// tellTakeovers tells which of the runs were taken over, each time once.
func (s *state) tellTakeovers(runs ...goclaw.RunInfo) {
	told := 0
	for _, r := range runs {
		if !s.fresh(r) {
			continue
		}
		if told++; told <= maxTakeovers {
			s.note(s.takeover(r))
		}
	}
	if more := told - maxTakeovers; more > 0 {
		s.note("… and " + count(more, "run") + " more: /subagents")
	}
}

// takeover says how a run came into other hands.
func (s *state) takeover(r goclaw.RunInfo) string {
	how, who := "resumed after a restart: ", oneLine(r.Label)
	switch {
	case r.Recovery.Planned:
		how = "handed over: "
	case asks(r):
		how = "stopped by a restart: "
	}
	if r.SessionKey == s.session {
		who = "the turn of this chat"
	}
	text := how + who + " at step " + strconv.Itoa(r.Recovery.Step)
	if r.Recovery.Step == 0 {
		text = how + who + " at its start"
	}
	if len(r.Recovery.Uncertain) == 0 {
		return text
	}
	tools := slices.Compact(slices.Sorted(slices.Values(r.Recovery.Uncertain)))
	return text + "; the outcome of " + oneLine(strings.Join(tools, ", ")) + " is unknown, and it was not run again"
}
