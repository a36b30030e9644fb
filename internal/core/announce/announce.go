package announce

import (
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// Policy says how long announcements wait for each other.
type Policy struct {
	Window  time.Duration // of `each`: items that end within it share a turn
	MaxWait time.Duration // of `together`: the longest wait for siblings
}

// Ready splits the pending items of one session into those to announce now and
// the moment at which the next will be (0: only an event can make one ready).
func Ready(items []goclaw.InboxItem, now goclaw.Millis, p Policy) (ready []goclaw.InboxItem, next goclaw.Millis) {
	first := map[string]goclaw.Millis{}
	for _, it := range items {
		k := bundle(it)
		if t, ok := first[k]; !ok || it.CreatedAt < t {
			first[k] = it.CreatedAt
		}
	}
	for _, it := range items {
		due := first[bundle(it)]
		switch {
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
	if it.Mode == goclaw.AnnounceEach {
		return "each"
	}
	return "group " + it.Group
}

// Text words the end of a run for its requester: the state, the result, and
// one line of statistics.
func Text(r goclaw.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Subagent: %s] ", oneLine(r.Name()))
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
	switch {
	case result != "":
		if r.State != goclaw.StateCompleted {
			b.WriteString("\n\nPartial result:")
		}
		b.WriteString("\n\n" + result)
	case r.State == goclaw.StateCompleted:
		b.WriteString("\n\n(the worker returned no text)")
	}
	b.WriteString("\n\n" + Statistics(r))
	return b.String()
}

// Statistics is the one line that closes an announcement.
func Statistics(r goclaw.Run) string {
	cost := "cost unknown"
	if r.Usage.CostUSD != nil {
		cost = fmt.Sprintf("$%.4f", *r.Usage.CostUSD)
	}
	return fmt.Sprintf("(%s · %d tokens in, %d out · %s · %s)",
		(time.Duration(r.DurationMs()) * time.Millisecond).Round(10*time.Millisecond),
		r.Usage.Input, r.Usage.Output, cost, r.Session)
}

// Input is the requester's turn: every result once, then what to do with them.
func Input(items []goclaw.InboxItem) string {
	texts := make([]string, 0, len(items)+1)
	for _, it := range items {
		texts = append(texts, it.Text)
	}
	texts = append(texts, "Tell the user what matters of this, in your own voice; or answer only "+
		goclaw.NoReply+" if there is nothing to say.")
	return strings.Join(texts, "\n\n")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
