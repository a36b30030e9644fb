package metrics

import "goclaw"

const (
	maxModels = 50
	// lately is how many ended runs are remembered, so that a notice that comes
	// after a run's end does not bring it back.
	lately = 256
	// maxWaiting bounds the results whose announcement is timed.
	maxWaiting = 10_000
)

// book is what metrics remember of runs; its user locks it.
type book struct {
	runs   map[string]tracked // that have not ended
	models map[string]bool    // that have a label

	ended [lately]string
	next  int

	waiting map[goclaw.SessionKey][]goclaw.Millis // ends of workers whose requester was not told yet
	waits   int
}

type tracked struct {
	state goclaw.RunState
	usage goclaw.Usage
}

func newBook() book {
	return book{runs: map[string]tracked{}, models: map[string]bool{}, waiting: map[goclaw.SessionKey][]goclaw.Millis{}}
}

// label is the label of a model.
func (b *book) label(model string) string {
	switch {
	case model == "":
		return "none"
	case !b.models[model] && len(b.models) >= maxModels:
		return other
	}
	b.models[model] = true
	return model
}

func (b *book) over(run string) bool {
	for _, id := range b.ended {
		if id == run {
			return true
		}
	}
	return false
}

// end forgets a run, and remembers that somebody is to be told of it.
func (b *book) end(r goclaw.Run) {
	delete(b.runs, r.ID)
	b.ended[b.next] = r.ID
	b.next = (b.next + 1) % lately
	if r.Trigger != goclaw.TriggerSpawn || r.Announce == goclaw.AnnounceNone || r.Requester.IsZero() || r.Requester.IsWorker() || b.waits >= maxWaiting {
		return
	}
	b.waiting[r.Requester] = append(b.waiting[r.Requester], r.FinishedAt)
	b.waits++
}

// told returns the ends that a session is told of now.
func (b *book) told(session goclaw.SessionKey) []goclaw.Millis {
	ends := b.waiting[session]
	delete(b.waiting, session)
	b.waits -= len(ends)
	return ends
}
