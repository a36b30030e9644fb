package announce

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"goclaw"
)

// Policy says how long announcements wait for each other.
type Policy struct {
	Window  time.Duration // of `each`: items that end within it share a turn
	MaxWait time.Duration // of `together`: the longest wait for siblings

	// Attempts bounds the failed deliveries of an announcement, with Backoff
	// between them, doubled each time up to an hour; then it is parked.
	// 0: one.
	Attempts int
	Backoff  time.Duration
}

// Failed counts one more failed delivery of items: when they are tried again,
// or that they are parked. They share the fate of the one that was tried most.
func (p Policy) Failed(items []goclaw.InboxItem, why string, now goclaw.Millis) goclaw.Return {
	tried := 0
	for _, it := range items {
		tried = max(tried, it.Attempts)
	}
	return goclaw.Return{
		Why:    why,
		NextAt: now.Add(min(p.Backoff<<min(tried, 20), time.Hour)),
		Parked: tried+1 >= p.Attempts,
	}
}

// Ready splits the pending items of one session into those to announce now and
// the moment at which the next will be (0: only an event can make one ready).
// Results of a caller's tools are for the one run that waits for them.
func Ready(items []goclaw.InboxItem, now goclaw.Millis, p Policy) (ready []goclaw.InboxItem, next goclaw.Millis) {
	first := map[string]goclaw.Millis{}
	items = slices.DeleteFunc(slices.Clone(items), func(it goclaw.InboxItem) bool { return it.Kind == goclaw.ItemResults })
	for _, it := range items {
		k := bundle(it)
		if t, ok := first[k]; !ok || it.CreatedAt < t {
			first[k] = it.CreatedAt
		}
	}
	for _, it := range items {
		due := max(first[bundle(it)], it.NextAt)
		switch {
		case it.Kind == goclaw.ItemSteer:
		case it.Mode == goclaw.AnnounceEach:
			due = due.Add(p.Window)
		case it.GroupOpen:
			due = due.Add(p.MaxWait)
		}
		switch {
		case due <= now:
			ready = append(ready, it)
		case next == 0 || due < next:
			next = due
		}
	}
	return ready, next
}

// bundle names what an item waits together with.
func bundle(it goclaw.InboxItem) string {
	if it.Kind == goclaw.ItemSteer {
		return "item " + it.ID
	}
	if it.Mode == goclaw.AnnounceEach {
		return "each"
	}
	return "group " + it.Group
}

// Text words the end of a run for its requester: the state, the result, and
// one line of statistics. Of a result longer than the profile's ResultTokens
// (four bytes each) it holds the beginning, and says how to read on; cut is
// true then, and the whole is to be kept as the artifact ResultArtifact.
func Text(r goclaw.Run) (text string, cut bool) {
	var b strings.Builder
	kind := "Subagent"
	if r.Trigger == goclaw.TriggerCron {
		kind = "Cron"
	}
	fmt.Fprintf(&b, "[%s: %s] ", kind, oneLine(r.Name()))
	switch r.State {
	case goclaw.StateCompleted:
		b.WriteString("Complete.")
	case goclaw.StateTimeout:
		b.WriteString("Timed out: " + r.Error)
	case goclaw.StateCancelled:
		b.WriteString("Cancelled: " + r.Error)
	default:
		b.WriteString("Failed: " + r.Error)
	}
	result := strings.TrimSpace(r.Result)
	whole := len(result)
	result, cut = head(result, r.Profile.ResultTokens)
	switch {
	case result != "":
		if r.State != goclaw.StateCompleted {
			b.WriteString("\n\nPartial result:")
		}
		b.WriteString("\n\n" + result)
	case r.State == goclaw.StateCompleted:
		b.WriteString("\n\n(the worker returned no text)")
	}
	if cut {
		before := strings.Index(r.Result, result) // what was trimmed
		fmt.Fprintf(&b, "\n\n[Cut: %d of about %d tokens. Read on with artifact_read {\"handle\":%q,\"offset\":%d}]",
			r.Profile.ResultTokens, (whole+3)/4, goclaw.ArtifactHandle(r.ID, ResultArtifact), before+len(result))
	}
	b.WriteString("\n\n" + Statistics(r))
	return b.String(), cut
}

// ResultArtifact is the name of the artifact that holds a whole result.
const ResultArtifact = "result.md"

// head is s, or as much of its beginning as so many tokens hold: up to the
// last line or word that fits.
func head(s string, tokens int) (string, bool) {
	most := tokens * 4
	if tokens <= 0 || len(s) <= most {
		return s, false
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	s = s[:most]
	if i := strings.LastIndexAny(s, "\n"); i > most*3/4 {
		s = s[:i]
	} else if i := strings.LastIndexAny(s, " \t"); i > most*3/4 {
		s = s[:i]
	}
	return s, true
}

// Statistics is the one line that closes an announcement.
func Statistics(r goclaw.Run) string {
	cost := "cost unknown"
	if r.Usage.CostUSD != nil {
		cost = fmt.Sprintf("$%.4f", *r.Usage.CostUSD)
	}
	handed := ""
	if r.Attempts > 1 {
		handed = fmt.Sprintf(" · %d attempts (HANDOFF-1.md to HANDOFF-%d.md)", r.Attempts, r.Attempts-1)
	}
	return fmt.Sprintf("(%s · %d tokens in, %d out · %s%s · %s)",
		(time.Duration(r.DurationMs()) * time.Millisecond).Round(10*time.Millisecond),
		r.Usage.Input, r.Usage.Output, cost, handed, r.Session)
}

// Input is the turn of a requester that talks with a person: every result
// once, then what to do with them.
func Input(items []goclaw.InboxItem) string {
	return strings.Join(append(texts(items), whatToDo), "\n\n")
}

const whatToDo = "Tell the user what matters of this, in your own voice; or answer only " +
	goclaw.NoReply + " if there is nothing to say."

// Unanswered shows an Input to the person themselves, when no model can be
// asked what it thinks of it.
func Unanswered(input string) string {
	return strings.TrimSpace(strings.TrimSuffix(input, whatToDo))
}

// Between is what reaches a worker between its steps: its own workers' results
// and messages to it.
func Between(items []goclaw.InboxItem) string {
	all := texts(items)
	if slices.ContainsFunc(items, func(it goclaw.InboxItem) bool { return it.Kind != goclaw.ItemSteer }) {
		all = append(all, "Go on with your task. Your last reply, once all your workers have ended, is your result.")
	}
	return strings.Join(all, "\n\n")
}

func texts(items []goclaw.InboxItem) []string {
	all := make([]string, len(items), len(items)+1)
	for i, it := range items {
		all[i] = it.Text
	}
	return all
}

// Steer words a message to a worker that is under way.
func Steer(from, text string) string {
	return fmt.Sprintf("[Message from %s]: %s", oneLine(from), strings.TrimSpace(text))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
