package protocol

import (
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

const (
	lease               = 15 * time.Second
	start goclaw.Millis = 1000
)

// scenario is what is explored: work that was accepted, a model that answers,
// and what may go wrong how often.
type scenario struct {
	name   string
	begin  []goclaw.Run // a completed one has ended before
	leaves []string     // workers that a run u had started before it ended
	brain  func(goclaw.Run, turn.State) reply
	policy announce.Policy

	maxWorkers int
	workers    goclaw.Profile // of spawned runs
	only       string         // ... or of this one
	skew       [2]goclaw.Millis
	jump       time.Duration

	limits   [kinds]uint8
	together int // crashes and clock jumps of one path

	steer  string   // the worker that a person writes to
	cancel []string // the runs that a person may cancel

	fine bool // model calls leave in steps of their own

	// everyZombie follows also jobs whose next write will be refused.
	everyZombie bool

	// everyStep follows every order of steps, also where it can't matter.
	everyStep bool

	slow bool // it has more than some thousand states

	mayFail bool // runs fail by the policy or for want of a model

	// What mutations replace, and what they leave out.
	wrap          func(*memory.Store) engine.Store
	recover       func(turn.State, string, bool) turn.Recovery
	looksTwice    bool // finish: what is ready at its second look at the inbox
	asksWithCount bool // waitForPerson: how many items it knows of
	checksClaim   bool // unmoved: whether what was read is still its own
	wakesByGroup  bool // Wake.Together
	cascades      bool // Ending.Cascade

	knowsAcceptance bool // ready: when the turn was accepted
}

func (sc *scenario) wrapped(s *memory.Store) engine.Store {
	if sc.wrap == nil {
		return s
	}
	return sc.wrap(s)
}

// profile is that of a new run.
func (sc *scenario) profile(name string) goclaw.Profile {
	if name == "turn" || sc.only != "" && name != sc.only {
		return goclaw.Profile{}
	}
	return sc.workers
}

// item is an inbox item as a reader sees it, also once it is taken.
func (sc *scenario) item(s *snapshot, id string) goclaw.InboxItem {
	if id == "steer" {
		return goclaw.InboxItem{ID: id, Kind: goclaw.ItemSteer, Text: announce.Steer("p", "hurry")}
	}
	r := *s.run(id)
	r.FinishedAt = 0 // as it was announced: without a duration, which makes more states equal
	text, _ := announce.Text(r)
	return goclaw.InboxItem{ID: id, Kind: goclaw.ItemAnnouncement, Text: text}
}

// user is a person's message to the main session.
func user(id string) goclaw.Run {
	return goclaw.Run{
		ID: id, Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, Task: id, State: goclaw.StateQueued, CreatedAt: start,
	}
}

// left is a user's run that has ended and left workers.
func left(id string) goclaw.Run {
	r := user(id)
	r.State = goclaw.StateCompleted
	return r
}

// worker is what the run left behind.
func (sc *scenario) worker(id string) goclaw.Run {
	return goclaw.Run{
		ID: id, Session: goclaw.SubagentKey("main", id), Trigger: goclaw.TriggerSpawn, Requester: goclaw.MainKey("main"),
		Parent: "u", Depth: 1, Root: "u", Lane: goclaw.MainKey("main"), Label: id, Task: id, Cleanup: goclaw.CleanupKeep,
		Announce: goclaw.AnnounceTogether, State: goclaw.StateQueued, CreatedAt: start, Profile: sc.profile(id),
	}
}

// accept puts what is there at the beginning into the store.
func (sc *scenario) accept(s *memory.Store) error {
	for _, r := range sc.begin {
		ended := r.State.Ended()
		r.State = goclaw.StateQueued
		if _, _, err := s.Accept(background, goclaw.Acceptance{Run: r}); err != nil {
			return err
		}
		if !ended {
			continue
		}
		claimed, err := s.Claim(background, goclaw.ClaimRequest{Owner: "before", Now: start, Lease: lease, Max: 1})
		if err != nil {
			return err
		}
		end := goclaw.Event{Kind: goclaw.EventEnd, At: start, End: &goclaw.EndEvent{State: goclaw.StateCompleted}}
		err = s.End(background, claimed[0].Run.Fence(), goclaw.Ending{
			Batch: goclaw.Batch{Events: []goclaw.Event{end}, Now: start}, State: goclaw.StateCompleted,
		})
		if err != nil {
			return err
		}
	}
	for _, id := range sc.leaves {
		if _, _, err := s.Accept(background, goclaw.Acceptance{Run: sc.worker(id)}); err != nil {
			return err
		}
	}
	return nil
}

// calls is a reply that makes calls, written "id name arguments".
func calls(all ...string) reply {
	var r reply
	for _, one := range all {
		id, rest, _ := strings.Cut(one, " ")
		name, args, _ := strings.Cut(rest, " ")
		r.calls = append(r.calls, goclaw.ToolCall{ID: id, Name: name, Arguments: args})
	}
	return r
}

// script answers each run's model calls in order, by the run's id; after the
// last, and for runs that it does not name, with a text.
func script(lines map[string][]reply) func(goclaw.Run, turn.State) reply {
	return func(r goclaw.Run, s turn.State) reply {
		if n := len(s.Steps); n < len(lines[r.ID]) {
			return lines[r.ID][n]
		}
		return reply{text: "done"}
	}
}

// standard is a scenario as the engine is today.
func standard(sc scenario) scenario {
	if sc.policy == (announce.Policy{}) {
		sc.policy = announce.Policy{Window: time.Second, MaxWait: 10 * time.Second, Attempts: 2, Backoff: time.Minute}
	}
	if len(sc.leaves) > 0 {
		sc.begin = append([]goclaw.Run{left("u")}, sc.begin...)
	}
	if sc.jump == 0 {
		sc.jump = 20 * time.Second
	}
	sc.recover = turn.Recover
	sc.looksTwice, sc.asksWithCount, sc.checksClaim, sc.wakesByGroup, sc.cascades, sc.knowsAcceptance = true, true, true, true, true, true
	return sc
}
