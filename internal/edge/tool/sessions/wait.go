package sessions

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"goclaw"
)

// awaited is what an agent is told of a worker that it waited for.
type awaited struct {
	RunID        string          `json:"runId"`
	Label        string          `json:"label"`
	Status       goclaw.RunState `json:"status"`
	Announcement string          `json:"announcement,omitempty"`
	Result       string          `json:"result,omitempty"` // of a worker that announces nothing
	NextOffset   int             `json:"nextOffset,omitempty"`
	Note         string          `json:"note,omitempty"`
}

// waited answers a wait.
type waited struct {
	Status string    `json:"status"` // ended, timeout or message
	Note   string    `json:"note,omitempty"`
	Ended  []awaited `json:"ended"`
	Active []awaited `json:"active,omitempty"` // still under way
}

// waitAll waits for the caller's workers that have not ended, or have since
// the call was made, or whose results it was not told yet. The call is made
// again each time something has come: all of these count however often it is.
func (d deps) waitAll(ctx context.Context, in goclaw.Invocation, q request) (any, error) {
	watched, err := d.mine(ctx, in.Session, goclaw.RunFilter{Active: true})
	if err != nil {
		return nil, err
	}
	silent, err := d.mine(ctx, in.Session, goclaw.RunFilter{Ended: true, Limit: mostListed})
	if err != nil {
		return nil, err
	}
	for _, r := range silent {
		if r.Announce == goclaw.AnnounceNone && r.FinishedAt >= in.Since && !holds(watched, r.ID) {
			watched = append(watched, r)
		}
	}
	pending, err := d.records.Pending(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	for _, item := range pending {
		if item.Kind == goclaw.ItemSteer || holds(watched, item.Source) {
			continue
		}
		r, err := d.records.Run(ctx, item.Source)
		if err != nil {
			return nil, err
		}
		if r.Requester == in.Session {
			watched = append(watched, r)
		}
	}
	if len(watched) == 0 {
		return waited{Status: "ended", Ended: []awaited{}, Note: "you have no worker under way and no result to come"}, nil
	}
	slices.SortFunc(watched, func(a, b goclaw.Run) int { return int(a.Ordinal - b.Ordinal) })
	return d.wait(ctx, in, q, watched)
}

func holds(runs []goclaw.Run, id string) bool {
	return slices.ContainsFunc(runs, func(r goclaw.Run) bool { return r.ID == id })
}

// wait answers once all of the workers have ended, the time is over, or a
// message has come for the caller; until then it suspends the call. The
// deadline counts from the call's intent, so that neither a restart nor being
// asked again puts it off.
func (d deps) wait(ctx context.Context, in goclaw.Invocation, q request, watched []goclaw.Run) (any, error) {
	// Read after the runs: the item of a run that had ended is there, or taken.
	pending, err := d.records.Pending(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	out := waited{Status: "ended", Ended: []awaited{}}
	var consume []string
	for _, r := range watched {
		item := itemOf(pending, r)
		if item != nil && !r.State.Ended() { // it ended between the two looks
			if r, err = d.records.Run(ctx, r.ID); err != nil {
				return nil, err
			}
		}
		if !r.State.Ended() {
			out.Active = append(out.Active, awaited{RunID: r.ID, Label: r.Name(), Status: r.State})
			continue
		}
		out.Ended = append(out.Ended, told(r, item))
		if item != nil {
			consume = append(consume, item.ID)
		}
	}
	deadline := goclaw.Millis(0)
	if q.TimeoutSeconds > 0 {
		deadline = in.Since.Add(time.Duration(q.TimeoutSeconds) * time.Second)
	}
	switch {
	case len(out.Active) == 0:
	case deadline != 0 && goclaw.At(time.Now()) >= deadline:
		out.Status, out.Note = "timeout", "the results of those still under way are announced to you when they end"
	case slices.ContainsFunc(pending, func(i goclaw.InboxItem) bool { return i.Kind == goclaw.ItemSteer }):
		out.Status, out.Note = "message", "a message for you has come and follows; wait again afterwards if you must"
	default:
		return goclaw.ToolResult{Suspend: &goclaw.WaitingEvent{For: goclaw.WaitWorkers, Until: deadline}}, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return goclaw.ToolResult{Content: string(text), Consume: consume}, nil
}

// told is an ended worker with its result, unless that was told before.
func told(r goclaw.Run, item *goclaw.InboxItem) awaited {
	a := awaited{RunID: r.ID, Label: r.Name(), Status: r.State}
	switch {
	case item != nil:
		a.Announcement = item.Text
	case r.Announce == goclaw.AnnounceNone:
		a.Result, a.NextOffset = piece(r.Result, 0)
	default:
		a.Note = "announced already"
	}
	return a
}

// itemOf is the pending announcement of a run; nil if there is none.
func itemOf(pending []goclaw.InboxItem, r goclaw.Run) *goclaw.InboxItem {
	for i := range pending {
		if pending[i].Source == r.ID && pending[i].Kind != goclaw.ItemSteer {
			return &pending[i]
		}
	}
	return nil
}
