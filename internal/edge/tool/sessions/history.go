package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"goclaw"
)

type line struct {
	Role string `json:"role"`
	Text string `json:"text"`
	At   string `json:"at,omitempty"` // of what a search found
}

func (d deps) history(ctx context.Context, in goclaw.Invocation) (any, error) {
	q := struct {
		SessionKey string
		Limit      int
		Query      string
	}{Limit: 20}
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	key, err := goclaw.ParseSessionKey(q.SessionKey)
	if err != nil {
		return nil, err
	}
	runs, err := d.records.Runs(ctx, goclaw.RunFilter{Session: key})
	if err != nil {
		return nil, err
	}
	thing := goclaw.Thing{Session: key}
	if len(runs) > 0 {
		thing.Requester = runs[0].Requester
	}
	if ok, why := in.Profile.Access(in.Session, in.Fence.Run).MaySee(thing); !ok {
		return goclaw.Forbidden(why), nil
	}
	if strings.TrimSpace(q.Query) != "" {
		return d.search(ctx, runs, strings.TrimSpace(q.Query), q.Limit)
	}
	logs, err := d.transcripts.History(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	lines := []line{}
	for _, l := range logs {
		for _, u := range said(l.Events) {
			lines = append(lines, line{Role: u.role, Text: u.brief})
		}
	}
	switch {
	case len(lines) > 0:
	case len(runs) > 0:
		return nil, goclaw.BadRequest(fmt.Sprintf("%s begins anew; with query you search what was said before", key))
	default:
		return nil, goclaw.BadRequest(fmt.Sprintf("%s has no transcript (sessions_list shows the sessions)", key))
	}
	return lines[max(0, len(lines)-q.Limit):], nil
}

// search finds what was said in runs, the newest first, with query in it: in
// the whole record, whatever the model still sees of it.
func (d deps) search(ctx context.Context, runs []goclaw.Run, query string, limit int) (any, error) {
	want := lower(query)
	found := []line{}
	for _, r := range runs {
		events, err := d.records.Events(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		for _, u := range slices.Backward(said(events)) {
			if i := index(lower(u.text), want); i >= 0 && len(found) < limit {
				found = append(found, line{u.role, around(u.text, i, len(want)), u.at.Time().Format("2006-01-02 15:04Z")})
			}
		}
		if len(found) == limit {
			break
		}
	}
	slices.Reverse(found)
	if len(found) == 0 {
		return nil, goclaw.BadRequest(fmt.Sprintf("nothing in this session's record holds %q", clip(query)))
	}
	return found, nil
}

// lower folds case character by character, so that places stay the same.
func lower(s string) []rune {
	runes := []rune(s)
	for i, c := range runes {
		runes[i] = unicode.ToLower(c)
	}
	return runes
}

// index is where want begins in text, both in characters; -1 if nowhere.
func index(text, want []rune) int {
	before, _, ok := strings.Cut(string(text), string(want))
	if !ok {
		return -1
	}
	return len([]rune(before))
}

// around is the part of text that shows the n characters found at i.
func around(text string, i, n int) string {
	const most = 300 // characters on either side
	runes := []rune(text)
	from, to := max(0, i-most), min(len(runes), i+n+most)
	part := string(runes[from:to])
	if from > 0 {
		part = "…" + part
	}
	if to < len(runes) {
		part += "…"
	}
	return part
}

// utterance is something that a run's record holds.
type utterance struct {
	role  string
	at    goclaw.Millis
	text  string // all of it
	brief string // as a transcript shows it
}

// said lists what was said in a run.
func said(events []goclaw.Event) []utterance {
	var all []utterance
	for _, e := range events {
		u := utterance{at: e.At}
		switch {
		case e.Prompt != nil:
			u.role, u.text = "user", e.Prompt.Input.PlainText()
			u.brief = u.text
		case e.Input != nil:
			u.role, u.text = "user", e.Input.Message.PlainText()
			u.brief = u.text
		case e.Model != nil:
			u.role, u.text = "assistant", e.Model.Message.PlainText()
			u.brief = u.text
			for _, c := range e.Model.Message.Calls() {
				u.text += fmt.Sprintf(" [%s %s]", c.Name, c.Arguments)
				u.brief += fmt.Sprintf(" [%s %s]", c.Name, clip(c.Arguments))
			}
		case e.Result != nil:
			u.role, u.text = "tool", e.Result.Name+": "+e.Result.Content
			u.brief = e.Result.Name + ": " + clip(e.Result.Content)
		default:
			continue
		}
		all = append(all, u)
	}
	return all
}
