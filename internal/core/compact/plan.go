package compact

import (
	"cmp"
	"slices"

	"goclaw"
	"goclaw/internal/core/turn"
)

// Want is what a session has, and what it shall come down to. All sizes are
// tokens of four bytes.
type Want struct {
	Total int64           // of the next request, as it stands
	Logs  []goclaw.RunLog // the session's earlier runs, oldest first
	View  turn.View       // what earlier compactions have made of them
	Run   goclaw.Run      // the run under way
	State turn.State      // its own record so far

	Limit      int64 // what the request shall not pass
	KeepRecent int64 // how much of the newest runs stays word for word
	Summarise  bool  // also if cutting results would do
}

// Plan is how to get there.
type Plan struct {
	Trimmed []goclaw.TrimmedResult // results to be cut
	Through int64                  // ordinal of the last run to be summarised; 0: none
	Total   int64                  // of the request afterwards, without the summary's own size
}

// IsZero reports whether there is nothing that could be done.
func (p Plan) IsZero() bool { return len(p.Trimmed) == 0 && p.Through == 0 }

const (
	// A compaction makes room for a while: it aims below the limit.
	aimPercent = 70
	// Cut results alone will do if they bring it down to this.
	enoughPercent = 85
	// Results up to this length are never cut: little would be gained.
	worthTrimming = 2000
	// The newest steps of the run under way stay as they are.
	keepSteps = 2
)

// Make decides. Tool results go first, oldest and largest first; a summary
// only if that is not enough.
func Make(w Want) Plan {
	aim := w.Limit * aimPercent / 100
	if w.Summarise {
		w.KeepRecent = min(w.KeepRecent, w.Total/4)
	}
	p := Plan{Total: w.Total}
	recent, whole := recentFrom(w)
	saved := map[string]int64{} // by run
	for _, c := range candidates(w, whole) {
		if p.Total <= aim {
			break
		}
		p.Trimmed = append(p.Trimmed, c.TrimmedResult)
		p.Total -= c.saves
		saved[c.Run] += c.saves
	}
	if p.Total <= w.Limit*enoughPercent/100 && !w.Summarise {
		return p
	}
	for _, l := range w.Logs {
		if l.Run.Ordinal > w.View.Through && l.Run.Ordinal < recent {
			p.Through = max(p.Through, l.Run.Ordinal)
			p.Total -= tokens(w.View.Messages(l.Run, turn.Fold(l.Events))) - saved[l.Run.ID]
		}
	}
	if p.Through == 0 {
		return p
	}
	p.Total -= int64(len(w.View.Summary)) / 4
	p.Trimmed = slices.DeleteFunc(p.Trimmed, func(t goclaw.TrimmedResult) bool {
		return slices.ContainsFunc(w.Logs, func(l goclaw.RunLog) bool { return l.Run.ID == t.Run && l.Run.Ordinal <= p.Through })
	})
	return p
}

// recentFrom is the ordinal of the first run that is not summarised: the newest
// that fit into what is to be kept, and always the last one, if it fits once its
// results are cut. From whole on runs are kept word for word.
func recentFrom(w Want) (from, whole int64) {
	whole = w.Run.Ordinal
	left := w.KeepRecent
	for _, l := range slices.Backward(w.Logs) {
		if l.Run.Ordinal <= w.View.Through {
			return whole, whole
		}
		s := turn.Fold(l.Events)
		if left -= tokens(w.View.Messages(l.Run, s)); left >= 0 {
			whole = l.Run.Ordinal
			continue
		}
		if whole == w.Run.Ordinal && tokens(turn.Cut(l.Run, s, worthTrimming)) <= max(w.KeepRecent, 1) {
			return l.Run.Ordinal, whole
		}
		return whole, whole
	}
	return whole, whole
}

type candidate struct {
	goclaw.TrimmedResult
	ordinal int64
	saves   int64
}

// candidates are the results that may be cut: of the runs before one, and of
// the run under way but for its newest steps.
func candidates(w Want, before int64) []candidate {
	var all []candidate
	add := func(r goclaw.Run, s turn.State, steps int) {
		for _, st := range s.Steps[:max(0, steps)] {
			for id, res := range st.Results {
				if len(res.Content) <= worthTrimming || w.View.Trims(r.ID, id) {
					continue
				}
				all = append(all, candidate{
					TrimmedResult: goclaw.TrimmedResult{Run: r.ID, CallID: id, Bytes: len(res.Content)},
					ordinal:       r.Ordinal, saves: int64(len(res.Content)-len(turn.Trim(res.Content))) / 4,
				})
			}
		}
	}
	for _, l := range w.Logs {
		if l.Run.Ordinal > w.View.Through && l.Run.Ordinal < before {
			s := turn.Fold(l.Events)
			add(l.Run, s, len(s.Steps))
		}
	}
	add(w.Run, w.State, len(w.State.Steps)-keepSteps)
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.CallID, b.CallID))
	})
	return all
}

// tokens are four bytes of what messages hold.
func tokens(messages []goclaw.Message) int64 { return int64(Bytes(messages)+3) / 4 }

// Bytes counts what messages hold, roughly as a request has it.
func Bytes(messages []goclaw.Message) int {
	const around = 30
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			n += around + len(p.Text) + len(p.Opaque)
			if p.Call != nil {
				n += len(p.Call.ID) + len(p.Call.Name) + len(p.Call.Arguments)
			}
			if p.Result != nil {
				n += len(p.Result.CallID) + len(p.Result.Content)
			}
		}
	}
	return n
}
