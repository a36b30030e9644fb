package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"goclaw"
)

// Callers hands in what the senders of messages ran themselves.
type Callers interface {
	// AnswerCalls gives a run the results of all calls that it waits for. The
	// same may be given again. goclaw.ErrEnded if the run has ended, a
	// goclaw.BadRequest if a call is missing or unknown.
	AnswerCalls(ctx context.Context, run string, results []goclaw.ToolResult) (goclaw.Run, error)
}

// question is a request to the agent, whichever of OpenAI's APIs it came by.
type question struct {
	model   string
	agent   string
	named   bool // the model's name chose the agent
	session goclaw.SessionKey
	fresh   bool // nobody can have used the session before
	user    string
	field   string // where the entries stood
	entries []entry

	// rules are instructions for this request. orders says that system messages
	// are too, rather than a part of the conversation.
	rules  string
	orders bool

	tools  []goclaw.ToolSpec // of the caller
	must   []string          // of them: one must be called
	one    bool              // the caller takes one call at a time
	schema json.RawMessage   // of the answer; nil: it is free text

	stream, wait bool
	key          string // of a request that may be sent again
	digest       string // of its body
}

// accept takes the body that the question was read from, as a whole.
func (q *question) accept(body any) error {
	if q.wait && len(q.schema) > 0 {
		return invalid("X-GoClaw-Wait", "header X-GoClaw-Wait: what is said about the workers is text, so it can't follow an answer of the form that the request asks for: leave out one of the two")
	}
	if q.key != "" {
		q.digest = digest(body)
	}
	return nil
}

// entry is one piece of the conversation that a request carries.
type entry struct {
	role  string // system, developer, user, assistant or tool
	name  string
	text  string
	calls []goclaw.ToolCall // of an assistant, by the ids that the client knows
	call  string            // the call that a tool's text answers
}

// turn is what a question became.
type turn struct {
	run     goclaw.Run
	after   int    // replies of its model that earlier requests were answered with
	command string // without a run: the answer to a slash command
}

func (t turn) place() place { return place{t.run.ID, t.after} }

// headers reads what all requests to the agent say there, and whose
// conversation it is.
func (s *server) headers(r *http.Request, q *question) (err error) {
	if q.agent, q.named, err = s.agentOf(q.model); err != nil {
		return err
	}
	if text := r.Header.Get("X-GoClaw-Wait"); text != "" {
		if q.wait, err = strconv.ParseBool(text); err != nil {
			return invalid("X-GoClaw-Wait", "header X-GoClaw-Wait: want true or false, not %q", text)
		}
	}
	q.key = once(r)
	text := r.Header.Get("X-GoClaw-Session")
	switch {
	case text != "":
		if q.session, err = goclaw.ParseSessionKey(text); err != nil {
			return invalid("X-GoClaw-Session", "header X-GoClaw-Session: %v", err)
		}
		if q.named && q.session.Agent != q.agent {
			return invalid("X-GoClaw-Session", "the session %s is not of the agent %q that the model names", q.session, q.agent)
		}
	case q.user != "":
		q.session = goclaw.APIKey(q.agent, q.user)
	case q.key != "": // sent again, it must come to the same session
		q.session, q.fresh = goclaw.APIKey(q.agent, "req-"+uuid.NewSHA1(uuid.NameSpaceURL, []byte(q.key)).String()), true
	default:
		q.session, q.fresh = goclaw.APIKey(q.agent, "req-"+uuid.NewString()), true
	}
	return nil
}

// tail is how the entries end: with results of the caller's tools, with new text
// of the user, or with both.
type tail struct {
	from  int // the entry that made the calls, or the first result
	end   int // after the last result
	ids   []string
	texts []string // of the results
	said  string
}

func (q question) tail() tail {
	t := tail{from: len(q.entries)}
	var said []string
	last := len(q.entries) - 1
	for ; last >= 0 && q.entries[last].role != "tool" && q.entries[last].role != "assistant"; last-- {
		if q.entries[last].role == "user" {
			said = append(said, q.entries[last].text)
		}
	}
	slices.Reverse(said)
	t.said = strings.Join(said, "\n\n")
	if last < 0 || q.entries[last].role == "assistant" {
		return t
	}
	t.end = last + 1
	p, ours := parseCallID(q.entries[last].call)
	for i, e := range q.entries[:last+1] {
		if at, ok := parseCallID(e.call); e.role == "tool" && (i == last || ours && ok && at == p) {
			t.ids, t.texts, t.from = append(t.ids, e.call), append(t.texts, e.text), min(t.from, i)
		}
	}
	if !ours { // of another server: all that follow the last assistant
		for i := last - 1; i >= 0 && q.entries[i].role == "tool"; i-- {
			t.ids, t.texts, t.from = slices.Insert(t.ids, 0, q.entries[i].call), slices.Insert(t.texts, 0, q.entries[i].text), i
		}
	}
	for i, e := range q.entries[:t.from] {
		if slices.ContainsFunc(e.calls, func(c goclaw.ToolCall) bool { return slices.Contains(t.ids, c.ID) }) {
			t.from = i
			break
		}
	}
	return t
}

// input is the text of a new turn.
func (s *server) input(ctx context.Context, q question, t tail) (string, error) {
	text := t.said
	if strings.TrimSpace(text) == "" {
		if len(t.ids) == 0 {
			return "", invalid(q.field, "there is no new text: the conversation must end with a message of role user, or with results of tool calls")
		}
		text = "[The results of the tool calls stand above; go on from there.]"
	}
	fresh := q.fresh
	if !fresh {
		runs, err := s.Backend.Runs(ctx, goclaw.RunFilter{Session: q.session, Limit: 1})
		if err != nil {
			return "", err
		}
		fresh = len(runs) == 0
	}
	switch earlier := q.earlier(); {
	case fresh && len(earlier) > 0:
		text = told("Earlier conversation, as the client sent it", "End of the earlier conversation", earlier) + text
	case len(t.ids) > 0:
		text = told("Results of tool calls, as the client sent them", "End of the results", q.entries[t.from:t.end]) + text
	}
	rules := q.rules
	for i := len(q.entries); i > 0 && !fresh && q.orders; i-- {
		e := q.entries[i-1]
		if e.role == "assistant" || e.role == "tool" {
			break
		}
		if e.role == "system" || e.role == "developer" {
			rules = strings.TrimSpace(e.text + "\n" + rules)
		}
	}
	if rules != "" {
		text = "[Instructions of the client for this message]\n" + rules + "\n[End of the instructions]\n\n" + text
	}
	return text, nil
}

// earlier are the entries but for the new text.
func (q question) earlier() []entry {
	last := -1
	for i, e := range q.entries {
		if e.role == "assistant" || e.role == "tool" {
			last = i
		}
	}
	var out []entry
	for i, e := range q.entries {
		if i <= last || e.role != "user" {
			out = append(out, e)
		}
	}
	return out
}

// told puts entries into the text of a message.
func told(head, end string, entries []entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", head)
	for _, e := range entries {
		who := e.role
		if e.name != "" {
			who += " (" + e.name + ")"
		}
		if e.role == "tool" && e.call != "" {
			who += " " + e.call
		}
		text := e.text
		for _, c := range e.calls {
			text = strings.TrimSpace(text + "\n[called " + c.Name + " as " + c.ID + ": " + c.Arguments + "]")
		}
		fmt.Fprintf(&b, "%s: %s\n", who, text)
	}
	fmt.Fprintf(&b, "[%s]\n\n", end)
	return b.String()
}

// handback are the results of a run's calls.
type handback struct {
	run     goclaw.Run
	reply   int // of its model, that made the calls
	results []goclaw.ToolResult
	taken   bool // they are all on record already
}

// answered finds the waiting run whose calls the question answers. Without one
// (it has ended, it is another gateway's, it was offered other tools, the user
// says something besides) the question is a new turn, in the run's session if
// it still waits and the question names none.
func (s *server) answered(ctx context.Context, q *question, t tail) (*handback, error) {
	if len(t.ids) == 0 {
		return nil, nil
	}
	p, ours := parseCallID(t.ids[len(t.ids)-1])
	if !ours {
		return nil, nil
	}
	log, err := s.Backend.RunLog(ctx, p.run)
	if err != nil || log.Run.ID != p.run {
		if errors.Is(err, goclaw.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	replies := repliesOf(log)
	if !q.fresh && q.session != log.Run.Session || q.named && q.agent != log.Run.Session.Agent || p.reply > len(replies) {
		return nil, nil
	}
	reply := replies[p.reply-1]
	results, known := reply.match(p, t)
	if !known {
		return nil, nil
	}
	if !log.Run.State.Ended() {
		q.session, q.fresh = log.Run.Session, false
	}
	then := log.Run.Profile
	if strings.TrimSpace(t.said) != "" || len(q.must) > 0 || !sameTools(q.tools, then.Caller) || !sameJSON(q.schema, then.OutputSchema) {
		return nil, nil
	}
	missing := reply.unanswered(results)
	if q.one {
		results, missing = append(results, missing...), nil
	}
	var ids []string
	for _, m := range missing {
		if _, known := reply.results[m.CallID]; !known {
			ids = append(ids, callID(p.run, p.reply, m.CallID))
		}
	}
	if len(ids) > 0 && !log.Run.State.Ended() {
		return nil, invalid(q.field, "results are missing for %s: all calls of an answer are answered in one request", strings.Join(ids, ", "))
	}
	return &handback{run: log.Run, reply: p.reply, results: results, taken: reply.taken(results)}, nil
}

// match finds the provider's ids of the calls that are answered. It is not ok
// if one is unknown, or was answered with something else before.
func (r modelReply) match(p place, t tail) (results []goclaw.ToolResult, ok bool) {
	for i, id := range t.ids {
		at := slices.IndexFunc(r.calls, func(c goclaw.ToolCall) bool { return callID(p.run, p.reply, c.ID) == id })
		if at < 0 {
			return nil, false
		}
		c := r.calls[at]
		if before, known := r.results[c.ID]; known && before != t.texts[i] {
			return nil, false
		}
		results = append(results, goclaw.ToolResult{CallID: c.ID, Name: c.Name, Content: t.texts[i]})
	}
	return results, true
}

// unanswered are results for the calls that a client which takes one at a time
// was not told of.
func (r modelReply) unanswered(results []goclaw.ToolResult) (more []goclaw.ToolResult) {
	for _, c := range r.calls {
		if !slices.ContainsFunc(results, func(g goclaw.ToolResult) bool { return g.CallID == c.ID }) {
			res := goclaw.ToolError("This call was not made: the client takes one tool call at a time. Make it again by itself if it is still needed.")
			res.CallID, res.Name = c.ID, c.Name
			more = append(more, res)
		}
	}
	return more
}

// taken reports whether all these results are on record.
func (r modelReply) taken(results []goclaw.ToolResult) bool {
	for _, g := range results {
		if _, known := r.results[g.CallID]; !known {
			return false
		}
	}
	return true
}

// sameTools reports whether a request offers what the run was accepted with. A
// description may change: the model was told the first.
func sameTools(now, then []goclaw.ToolSpec) bool {
	if len(now) != len(then) {
		return false
	}
	for _, t := range then {
		i := slices.IndexFunc(now, func(n goclaw.ToolSpec) bool { return n.Name == t.Name })
		if i < 0 || !sameJSON(now[i].Schema, t.Schema) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
