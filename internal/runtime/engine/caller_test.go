package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/feed"
	"goclaw/internal/runtime/gateway"
)

var weather = goclaw.ToolSpec{
	Name: "weather", Description: "The weather of a place",
	Schema: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}`),
}

// await is what the caller of the turn gets to see next.
func await(t *testing.T, r *rig, run string) goclaw.Outcome {
	t.Helper()
	g := gateway.New(gateway.Options{Record: r.store.(gateway.Record), Feed: feed.New()})
	out, err := g.Await(t.Context(), run, true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func offer(t *testing.T, r *rig, text string, tools ...goclaw.ToolSpec) goclaw.Run {
	t.Helper()
	run, err := r.engine.Submit(t.Context(), goclaw.Inbound{Session: goclaw.MainKey("main"), Text: text, Caller: tools})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// asksForWeather calls the caller's tool twice beside one of the gateway's, once
// for a place that is no text, and then says what it was given.
func asksForWeather(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
	if strings.HasSuffix(lastText(q), "ask") {
		return calls(
			goclaw.ToolCall{ID: "a", Name: "weather", Arguments: `{"place":"Ulm"}`},
			goclaw.ToolCall{ID: "n", Name: "read_note", Arguments: `{}`},
			goclaw.ToolCall{ID: "b", Name: "weather", Arguments: `{"place":"Bonn"}`},
			goclaw.ToolCall{ID: "c", Name: "weather", Arguments: `{"place":7}`},
		)
	}
	var said []string
	for _, p := range q.Messages[len(q.Messages)-1].Parts {
		if p.Result != nil {
			said = append(said, p.Result.Content)
		}
	}
	return text(strings.Join(said, " | "))
}

func note() goclaw.Tool {
	return newTool("read_note", true, func(context.Context, goclaw.Invocation) goclaw.ToolResult { return goclaw.ToolOK("a note") })
}

func results(ids ...string) (all []goclaw.ToolResult) {
	for _, id := range ids {
		all = append(all, goclaw.ToolResult{CallID: id, Content: "sun in " + id})
	}
	return all
}

// One run is the whole loop: it waits without a slot for what the caller runs
// itself, also while the process is replaced, and goes on with the results.
func TestCallersTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		first := newRig(t, rigOptions{store: store, brain: asksForWeather, tools: []goclaw.Tool{note()}})
		stop := first.start(t.Context())
		run := offer(t, first, "ask", weather)
		out := await(t, first, run.ID)
		if out.Status != goclaw.StateWaiting || len(out.Calls) != 2 || out.Calls[0].ID != "a" || out.Calls[1].ID != "b" {
			t.Fatalf("the caller is told %s, %+v", out.Status, out.Calls)
		}
		offered := false
		for _, spec := range first.asked(false)[0].Tools {
			offered = offered || spec.Name == "weather"
		}
		if !offered {
			t.Error("the model was not offered the caller's tool")
		}
		stop()
		second := newRig(t, rigOptions{store: store, brain: asksForWeather, tools: []goclaw.Tool{note()}, owner: "p2"})
		for _, wrong := range [][]goclaw.ToolResult{results("a"), results("a", "b", "z"), results("a", "b", "a")} {
			if _, err := second.engine.AnswerCalls(t.Context(), run.ID, wrong); !goclaw.IsBadRequest(err) {
				t.Errorf("%d results: %v", len(wrong), err)
			}
		}
		for range 2 {
			if _, err := second.engine.AnswerCalls(t.Context(), run.ID, results("b", "a")); err != nil {
				t.Fatal(err)
			}
		}
		defer second.start(t.Context())()
		out = await(t, second, run.ID)
		want := `sun in a | a note | sun in b | `
		if out.Status != goclaw.StateCompleted || !strings.HasPrefix(out.Reply, want) || !strings.Contains(out.Reply, "place") {
			t.Errorf("%s: %q, want %q and what is wrong with the fourth", out.Status, out.Reply, want)
		}
		if _, err := second.engine.AnswerCalls(t.Context(), run.ID, results("a", "b")); !errors.Is(err, goclaw.ErrEnded) {
			t.Errorf("results after the end: %v", err)
		}
		second.settle()
	})
}

// A new message takes the place of a turn that waits for its caller; a caller
// that never comes back holds its session up for a bounded time.
func TestCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: asksForWeather, tools: []goclaw.Tool{note()}})
		defer r.start(t.Context())()
		left := offer(t, r, "ask", weather)
		await(t, r, left.ID)
		next := offer(t, r, "ask", weather)
		await(t, r, next.ID)
		if now, _ := r.store.Run(t.Context(), left.ID); now.State != goclaw.StateCancelled || !strings.Contains(now.Error, "new message") {
			t.Errorf("the turn before: %s, %q", now.State, now.Error)
		}
		<-time.After(16 * time.Minute)
		if now, _ := r.store.Run(t.Context(), next.ID); now.State != goclaw.StateFailed || !strings.Contains(now.Error, "no result for weather") {
			t.Errorf("nobody came: %s, %q", now.State, now.Error)
		}
		r.settle()
	})
}

func TestCallersToolsAreChecked(t *testing.T) {
	r := newRig(t, rigOptions{brain: asksForWeather, tools: []goclaw.Tool{note()}})
	named := func(name, schema string) goclaw.ToolSpec {
		return goclaw.ToolSpec{Name: name, Schema: json.RawMessage(schema)}
	}
	for want, tools := range map[string][]goclaw.ToolSpec{
		"letters":    {named("a b", `{}`)},
		"tool 2":     {weather, named("", `{}`)},
		"twice":      {weather, weather},
		"has a tool": {named("read_note", `{}`)},
		"Schema":     {named("odd", `{"properties":7}`)},
	} {
		_, err := r.engine.Submit(t.Context(), goclaw.Inbound{Session: goclaw.MainKey("main"), Text: "x", Caller: tools})
		if !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// demanded submits a turn whose sender demands something of the answer, and
// returns how it ended.
func demanded(t *testing.T, r *rig, in goclaw.Inbound) goclaw.Run {
	t.Helper()
	in.Session, in.Text = goclaw.MainKey("main"), "ask"
	run, err := r.engine.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out := await(t, r, run.ID)
	if len(out.Calls) > 0 {
		if _, err := r.engine.AnswerCalls(t.Context(), run.ID, results(out.Calls[0].ID)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, r, run.ID)
	ended, err := r.store.Run(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// says is a model whose replies are given, the last one again and again.
func says(replies ...goclaw.Message) brain {
	n := 0
	return func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
		m := replies[min(n, len(replies)-1)]
		n++
		reply := goclaw.ModelReply{Message: m, Stop: goclaw.StopEnd}
		if len(m.Calls()) > 0 {
			reply.Stop = goclaw.StopTools
		}
		return reply, nil
	}
}

func saying(s string) goclaw.Message { return goclaw.Text(goclaw.RoleAssistant, s) }

func calling(name string) goclaw.Message {
	return goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{{Kind: goclaw.PartToolCall,
		Call: &goclaw.ToolCall{ID: "a", Name: name, Arguments: `{"place":"Ulm"}`}}}}
}

// A turn whose sender requires a call, or an answer of a form, gives it or fails:
// what is not so goes back to the model once.
func TestDemandsOfTheCaller(t *testing.T) {
	person := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	must := goclaw.Inbound{Caller: []goclaw.ToolSpec{weather}, MustCall: []string{"weather"}}
	form := goclaw.Inbound{OutputSchema: person}
	both := must
	both.OutputSchema = person
	for name, tc := range map[string]struct {
		in     goclaw.Inbound
		model  brain
		state  goclaw.RunState
		result string
		calls  int    // of the model
		told   string // to the model last
	}{
		"a call at once":               {must, says(calling("weather"), saying("sun")), goclaw.StateCompleted, "sun", 2, ""},
		"a call of its own is no call": {must, says(calling("read_note"), saying("rain"), calling("weather"), saying("sun")), goclaw.StateCompleted, "sun", 4, ""},
		"a call when asked again":      {must, says(saying("rain"), calling("weather"), saying("sun")), goclaw.StateCompleted, "sun", 3, ""},
		"no call":                      {must, says(saying("rain")), goclaw.StateFailed, "rain", 2, "requires that you call weather"},
		"an answer of the form":        {form, says(saying("Here:\n```json\n{ \"name\": \"Ann\" }\n```")), goclaw.StateCompleted, `{"name":"Ann"}`, 1, "JSON Schema"},
		"of the form when sent back":   {form, says(saying("Ann"), saying(`{"name":"Ann"}`)), goclaw.StateCompleted, `{"name":"Ann"}`, 2, "not accepted"},
		"not of the form":              {form, says(saying(`{"name":7}`)), goclaw.StateFailed, `{"name":7}`, 2, "not accepted"},
		"both": {both, says(saying(`{"name":"Ann"}`), calling("weather"), saying("sun"), saying(`{"name":"Ann"}`)),
			goclaw.StateCompleted, `{"name":"Ann"}`, 4, "not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigOptions{brain: tc.model, tools: []goclaw.Tool{note()}})
				defer r.start(t.Context())()
				run := demanded(t, r, tc.in)
				asked := r.asked(false)
				if run.State != tc.state || run.Result != tc.result || len(asked) != tc.calls {
					t.Errorf("%s %q (%s) after %d calls; want %s %q after %d", run.State, run.Result, run.Error, len(asked), tc.state, tc.result, tc.calls)
				}
				first, last := lastText(asked[0]), lastText(asked[len(asked)-1])
				if !strings.Contains(last, tc.told) || !strings.HasSuffix(first, "\n</turn_context>\n\nask") {
					t.Errorf("told %q, then %q", first, last)
				}
				if string(asked[0].Schema) != string(tc.in.OutputSchema) {
					t.Errorf("the provider is asked for the form %s", asked[0].Schema)
				}
				r.settle()
			})
		})
	}
}

func TestDemandsAreChecked(t *testing.T) {
	r := newRig(t, rigOptions{brain: asksForWeather})
	for want, in := range map[string]goclaw.Inbound{
		"is not offered": {Caller: []goclaw.ToolSpec{weather}, MustCall: []string{"clothes"}},
		"schema":         {OutputSchema: json.RawMessage(`{"properties":7}`)},
	} {
		in.Session, in.Text = goclaw.MainKey("main"), "x"
		if _, err := r.engine.Submit(t.Context(), in); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// movingRecord is a record in which something happens after each look at what
// a waiting turn is about.
type movingRecord struct {
	gateway.Record
	move func()
}

func (m movingRecord) Events(ctx context.Context, run string) ([]goclaw.Event, error) {
	events, err := m.Record.Events(ctx, run)
	m.move()
	return events, err
}

func (m movingRecord) Pending(ctx context.Context, key goclaw.SessionKey) ([]goclaw.InboxItem, error) {
	items, err := m.Record.Pending(ctx, key)
	m.move()
	return items, err
}

// Calls whose results were given are not asked for again, though the turn takes
// them while it is looked at.
func TestResultsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		first := newRig(t, rigOptions{store: store, brain: says(calling("weather"))})
		stop := first.start(t.Context())
		run := offer(t, first, "ask", weather)
		calls := await(t, first, run.ID).Calls
		stop()
		second := newRig(t, rigOptions{store: store, brain: says(saying("sun")), owner: "p2"})
		if _, err := second.engine.AnswerCalls(t.Context(), run.ID, results(calls[0].ID)); err != nil {
			t.Fatal(err)
		}
		stop = nil
		g := gateway.New(gateway.Options{Feed: feed.New(), Record: movingRecord{store, func() {
			if stop == nil {
				stop = second.start(t.Context())
				second.settle()
			}
		}}})
		out, err := g.Await(t.Context(), run.ID, true)
		if stop == nil {
			t.Fatal("it was not looked at")
		}
		defer stop()
		if err != nil || len(out.Calls) > 0 || out.Reply != "sun" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
