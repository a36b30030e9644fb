package protocol

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
)

// checkWrite says what is wrong with a transaction, or "". A writer without a
// fence may not touch a record.
func checkWrite(before, after *snapshot, by goclaw.Fence) string {
	for _, was := range before.runs {
		if !after.has(was.ID) {
			return fmt.Sprintf("the accepted run %s has vanished", was.ID)
		}
		is := after.run(was.ID)
		if is.Epoch < was.Epoch || is.Session != was.Session || is.Requester != was.Requester || is.Ordinal != was.Ordinal {
			return fmt.Sprintf("run %s has become another: %+v", was.ID, *is)
		}
		old, all := before.events[was.ID], after.events[was.ID]
		switch {
		case was.ID != by.Run:
			// Its record was not read again: checkRest does that.
		case len(all) < len(old) || len(old) > 0 && !reflect.DeepEqual(all[:len(old)], old):
			return fmt.Sprintf("the record of %s has changed: %d events were %d", was.ID, len(all), len(old))
		default:
			for i, e := range all {
				if e.Seq != i {
					return fmt.Sprintf("event %d of %s has number %d", i, was.ID, e.Seq)
				}
			}
		}
		wrote := len(all) != len(old) || is.State.Ended() != was.State.Ended()
		holds := by == was.Fence() && was.State == goclaw.StateRunning
		switch {
		case wrote && !holds:
			return fmt.Sprintf("%s wrote to %s in epoch %d, which is epoch %d of %q, %s", by.Owner, was.ID, by.Epoch, was.Epoch, was.Owner, was.State)
		case was.State.Ended() && (is.State != was.State || is.Result != was.Result || is.FinishedAt != was.FinishedAt || is.Epoch != was.Epoch):
			return fmt.Sprintf("run %s had ended as %s and is %s", was.ID, was.State, is.State)
		case is.State.Ended() && !was.State.Ended():
			if bad := checkEnd(after, is); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// checkEnd looks at a run in the moment in which it ends.
func checkEnd(after *snapshot, r *goclaw.Run) string {
	if r.Trigger != goclaw.TriggerSpawn || r.State != goclaw.StateCompleted {
		return ""
	}
	if open := after.workers(r.Session); len(open) > 0 {
		return fmt.Sprintf("worker %s completes before its own worker %s has ended", r.ID, open[0].ID)
	}
	if left := after.of(r.Session); len(left) > 0 {
		return fmt.Sprintf("worker %s completes without having read %s", r.ID, left[0].ID)
	}
	return ""
}

// check says what is wrong with the content of a store, or "".
func check(s *snapshot) string {
	for i := range s.runs {
		if bad := checkLog(s, &s.runs[i]); bad != "" {
			return bad
		}
	}
	for id, n := range said(s) {
		if n > 1 {
			return fmt.Sprintf("the announcement of %s is %d times in the transcripts", id, n)
		}
	}
	return checkSessions(s)
}

// checkLog holds a run's row against its record: it ends once.
func checkLog(s *snapshot, r *goclaw.Run) string {
	ends := 0
	for _, e := range s.events[r.ID] {
		if e.Kind == goclaw.EventEnd {
			ends++
		}
	}
	events := s.events[r.ID]
	last := len(events) > 0 && events[len(events)-1].Kind == goclaw.EventEnd
	if ends > 1 || ends == 1 && !last || last != r.State.Ended() {
		return fmt.Sprintf("run %s is %s and its record has %d ends", r.ID, r.State, ends)
	}
	return ""
}

// checkSessions finds a session with two running runs. A run that was
// cancelled before it began may be running besides: all it does is end.
func checkSessions(s *snapshot) string {
	older := map[goclaw.SessionKey]string{}
	for _, r := range s.runs {
		if r.State == goclaw.StateRunning && r.CancelAt == 0 && older[r.Session] != "" {
			return fmt.Sprintf("%s is running although %s of the same session has not ended", r.ID, older[r.Session])
		}
		if !r.State.Ended() {
			older[r.Session] = r.ID
		}
	}
	return ""
}

// checkSleep finds a run that waits although there is something for it.
func (sc *scenario) checkSleep(s *snapshot, now goclaw.Millis) string {
	for _, r := range s.runs {
		if r.State != goclaw.StateWaiting || r.WaitsFor != goclaw.WaitWorkers || r.WakeAt != 0 && r.WakeAt <= now {
			continue
		}
		ready, _ := announce.Ready(s.of(r.Session), now, sc.policy)
		if len(turn.Fold(s.events[r.ID]).Pending()) > 0 { // a tool waits: for all workers, or a message
			ready = slices.DeleteFunc(ready, func(it goclaw.InboxItem) bool { return it.Kind != goclaw.ItemSteer })
		}
		switch {
		case len(ready) > 0:
			return fmt.Sprintf("%s sleeps until %d (0: for ever) over %s, which is there for it", r.ID, r.WakeAt, ids(ready))
		case len(s.workers(r.Session)) == 0 && r.WakeAt == 0:
			return fmt.Sprintf("%s waits for workers and has none", r.ID)
		}
	}
	return ""
}

// said counts how often the announcement of each ended worker is in all
// transcripts.
func said(s *snapshot) map[string]int {
	counts := map[string]int{}
	var all strings.Builder
	for _, key := range s.sessions() {
		all.WriteString(spoken(s, key))
	}
	text := all.String()
	for _, r := range s.runs {
		if r.Trigger == goclaw.TriggerSpawn && r.State.Ended() && r.Announce != goclaw.AnnounceNone {
			counts[r.ID] = strings.Count(text, opening(r))
		}
	}
	return counts
}

// opening is how the announcement of a run begins.
func opening(r goclaw.Run) string { return "[Subagent: " + r.Name() + "] " }

// spoken is everything that a session's transcript holds.
func spoken(s *snapshot, key goclaw.SessionKey) string {
	var b strings.Builder
	for _, m := range s.transcript(key) {
		for _, p := range m.Parts {
			b.WriteString(p.Text)
			if p.Result != nil {
				b.WriteString(p.Result.Content)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// checkRest says what is missing in a state in which nothing can move any
// more, or "".
func (sc *scenario) checkRest(x *explorer, s state) string {
	snap := x.snaps[s.snap]
	for _, r := range snap.runs {
		events, err := snap.store.Events(background, r.ID)
		if err != nil || len(events) > 0 && !reflect.DeepEqual(events, snap.events[r.ID]) {
			return fmt.Sprintf("the record of %s is not what was written: %v", r.ID, err)
		}
	}
	asleep := map[goclaw.SessionKey]bool{}
	for _, r := range snap.runs {
		switch {
		case r.State == goclaw.StateWaiting && r.WaitsFor == goclaw.WaitPerson:
			asleep[r.Session] = true
		case r.State == goclaw.StateFailed && !sc.mayFail:
			return fmt.Sprintf("%s has failed, and had no reason to: %s", r.ID, r.Error)
		case !r.State.Ended():
			return fmt.Sprintf("nothing can move and %s is %s", r.ID, r.State)
		}
	}
	parked := map[string]bool{}
	for _, p := range snap.parked {
		parked[p.ID] = true
	}
	for _, it := range snap.items {
		if !asleep[it.Session] {
			return fmt.Sprintf("nothing can move and %s is still pending for %s", it.ID, it.Session)
		}
		parked[it.ID] = true
	}
	for id, n := range said(snap) {
		if n == 0 && !parked[id] {
			return fmt.Sprintf("the announcement of %s is in no transcript", id)
		}
	}
	for i := range snap.runs {
		if bad := checkFamily(snap, &snap.runs[i], parked, s.used[crash] > 0); bad != "" {
			return bad
		}
	}
	return ""
}

// checkFamily looks at a worker and who started it: the result is where it
// was asked for, and who is cancelled takes its workers with it.
func checkFamily(s *snapshot, r *goclaw.Run, parked map[string]bool, crashed bool) string {
	if r.Trigger != goclaw.TriggerSpawn || !r.State.Ended() {
		return ""
	}
	parent := s.run(r.Parent)
	told := strings.Contains(spoken(s, r.Requester), opening(*r))
	if parent.State == goclaw.StateCompleted && r.Announce != goclaw.AnnounceNone && !told && !parked[r.ID] {
		return fmt.Sprintf("%s completed, and was not told the result of its worker %s", parent.ID, r.ID)
	}
	gone := parent.State == goclaw.StateCancelled || parent.State == goclaw.StateTimeout
	if crashed && gone && parent.Trigger == goclaw.TriggerSpawn && r.CancelAt == 0 && r.FinishedAt > parent.FinishedAt {
		return fmt.Sprintf("%s was stopped (%s), and its worker %s went on to its end", parent.ID, parent.State, r.ID)
	}
	return ""
}

// checkProgress finds a state from which no rest can be reached.
func (x *explorer) checkProgress() {
	back := make([][]int32, len(x.nodes))
	var found []int32
	good := make([]bool, len(x.nodes))
	for i, nexts := range x.next {
		if len(nexts) == 0 { // expand has checked it
			good[i] = true
			found = append(found, int32(i))
		}
		for _, n := range nexts {
			back[n] = append(back[n], int32(i))
		}
	}
	for len(found) > 0 {
		n := found[len(found)-1]
		found = found[:len(found)-1]
		for _, p := range back[n] {
			if !good[p] {
				good[p] = true
				found = append(found, p)
			}
		}
	}
	for i, ok := range good {
		if !ok {
			x.fail(int32(i), "from here on the runs can never come to rest")
			return
		}
	}
}

// trace shows how the violation comes about, as short as it can.
func (x *explorer) trace() string {
	var path []int32
	for n := x.broken.node; n >= 0; n = x.nodes[n].parent {
		path = append(path, n)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", x.sc.name, x.broken.what)
	for i := len(path) - 1; i >= 0; i-- {
		n := x.nodes[path[i]]
		fmt.Fprintf(&b, "%3d. [%d] %s\n", len(path)-1-i, n.state.now, x.labels.get(n.label))
	}
	fmt.Fprintf(&b, "The store then holds:\n%s", x.snaps[x.nodes[x.broken.node].state.snap])
	return b.String()
}
