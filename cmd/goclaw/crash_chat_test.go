package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/provider/providertest"
)

// chat is a person's message and what the models make of it.
type chat struct {
	name string // c1, c2, …
	kind string
	key  goclaw.SessionKey
	run  string // the accepted one
}

// The kinds of chat. All but one start five workers.
const (
	chatPlain   = "plain"   // their results come together
	chatEach    = "each"    // one by one
	chatNested  = "nested"  // one of three has two workers of its own
	chatWaiting = "waiting" // that one waits for its workers by tool
	chatAwaited = "awaited" // the main agent waits by tool
	chatControl = "control" // one is steered, one is cancelled
	chatFell    = "fell"    // one that has workers is cancelled
)

var chatKinds = []string{chatPlain, chatPlain, chatEach, chatNested, chatWaiting, chatAwaited, chatControl, chatFell}

// role is what a worker of a chat is to do.
type role struct {
	name      string // within the chat
	requester string // its requester's name, "" for the main agent
	may       bool   // it need not have been started
	stopped   bool   // it may have been cancelled
	slow      bool
}

func (c *chat) roles() []role {
	five := []role{{name: "w0"}, {name: "w1"}, {name: "w2"}, {name: "w3"}, {name: "w4"}}
	switch c.kind {
	case chatControl:
		five[0].slow = true
		five[1].slow, five[1].stopped = true, true
	case chatNested, chatWaiting:
		return []role{{name: "w0"}, {name: "boss"}, {name: "w1"}, {name: "a", requester: "boss"}, {name: "b", requester: "boss"}}
	case chatFell:
		return []role{
			{name: "w0"}, {name: "boss", stopped: true},
			{name: "a", requester: "boss", may: true, stopped: true, slow: true},
			{name: "b", requester: "boss", may: true, stopped: true, slow: true},
		}
	}
	return five
}

// worker is the task and the label of a role: what it is known by everywhere.
func (c *chat) worker(name string) string { return c.name + "." + name }

// steered is what the first worker of a chatControl is told.
func (c *chat) steered() string { return "mind the gap, " + c.name }

// newChat is a message that is about to be sent.
func (s *site) newChat() *chat {
	kind := chatKinds[s.dice.n(len(chatKinds))]
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &chat{name: fmt.Sprintf("c%d", len(s.chats)+1), kind: kind}
	c.key = goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "nowhere", PeerKind: "direct", Peer: c.name}
	s.chats = append(s.chats, c)
	return c
}

// chatOf finds the chat that a worker or a main session belongs to.
func (s *site) chatOf(who string) *chat {
	name, _, _ := strings.Cut(who, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chats {
		if c.name == name {
			return c
		}
	}
	return nil
}

// gateways are clients of the gateways, those that are dead included.
func (s *site) gateways() []*client.Client {
	var all []*client.Client
	for _, seat := range s.seats {
		seat.mu.Lock()
		if seat.url != "" {
			all = append(all, client.New(seat.url, "secret", s.web))
		}
		seat.mu.Unlock()
	}
	return all
}

// try makes a call to some gateway, again and again until one answers.
func (s *site) try(ctx context.Context, call func(context.Context, *client.Client) error) error {
	for {
		err := errors.New("no gateway has started")
		if all := s.gateways(); len(all) > 0 {
			err = call(ctx, all[s.dice.n(len(all))])
		}
		if err == nil || s.t.Failed() {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// converse has a chat.
func (s *site) converse() { s.hear(s.newChat()) }

// hear sends a chat's message, waits until all that it led to is answered, and
// sends it once more: it has a key.
func (s *site) hear(c *chat) {
	ctx, cancel := context.WithTimeout(s.t.Context(), siteLimit)
	defer cancel()
	if err := s.submit(ctx, c); err != nil {
		s.t.Errorf("%s: %v", c.name, err)
		return
	}
	err := s.try(ctx, func(ctx context.Context, api *client.Client) error {
		out, err := api.Await(ctx, c.run, true)
		if err == nil && out.Unfinished != 0 {
			s.t.Errorf("%s: %d workers are unfinished", c.name, out.Unfinished)
		}
		return err
	})
	if err == nil {
		err = s.submit(ctx, c)
	}
	if err != nil {
		s.t.Errorf("%s: %v", c.name, err)
	}
}

// send sends a chat's message once.
func (c *chat) send(ctx context.Context, api *client.Client) (string, error) {
	receipt, err := api.Receive(ctx, goclaw.Inbound{Session: c.key, Text: "start " + c.name, Key: "once"})
	if err != nil {
		return "", err
	}
	return receipt.Run.ID, nil
}

// submit sends the message to one gateway, or to two at the same time. However
// often it is sent, it is one run.
func (s *site) submit(ctx context.Context, c *chat) error {
	var sending sync.WaitGroup
	failed := make([]error, 1+s.dice.n(2))
	runs := make([]string, len(failed))
	for i := range failed {
		sending.Go(func() {
			failed[i] = s.try(ctx, func(ctx context.Context, api *client.Client) error {
				run, err := c.send(ctx, api)
				if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status < 500 {
					s.t.Errorf("%s: %v", c.name, err)
				}
				runs[i] = run
				return err
			})
		})
	}
	sending.Wait()
	for _, run := range runs {
		if c.run == "" {
			c.run = run
		}
		if run != "" && run != c.run {
			s.t.Errorf("%s: the same message became the runs %s and %s", c.name, c.run, run)
		}
	}
	return errors.Join(failed...)
}

// A message to a worker that has not asked anything yet stands right behind its
// task.
var (
	startOf = regexp.MustCompile(`start (c\d+)`)
	taskOf  = regexp.MustCompile(`^c\d+\.(w\d|boss|a|b)`)
)

// caller says whose request it is, and how many replies came before.
func caller(r *providertest.Request) (who string, replies int) {
	for _, m := range r.Messages {
		if m.Role == goclaw.RoleAssistant {
			replies++
		}
	}
	if r.Worker() {
		return taskOf.FindString(r.Task()), replies
	}
	if m := startOf.FindStringSubmatch(r.FirstText()); m != nil {
		return m[1], replies
	}
	return "?", replies
}

// answer plays the models.
func (s *site) answer(r *providertest.Request) providertest.Answer {
	s.mu.Lock()
	s.arrivals[r.N] = time.Now()
	if first := s.asked[processOf(r)]; first != nil {
		close(first)
		s.asked[processOf(r)] = nil
	}
	s.mu.Unlock()
	if s.play != nil {
		return s.play(r)
	}
	who, replies := caller(r)
	c := s.chatOf(who)
	if c == nil {
		s.t.Errorf("nobody knows who asks: %s", r.FirstText())
		return providertest.Answer{Text: "?"}
	}
	var a providertest.Answer
	_, name, worker := strings.Cut(who, ".")
	switch {
	case !worker:
		a = c.playMain(r, replies)
	case name == "boss":
		a = c.playBoss(r, replies)
	default:
		a = c.playWorker(name, replies, s.effects)
	}
	a.Delay = s.dice.between(5*time.Millisecond, 30*time.Millisecond)
	for _, role := range c.roles() {
		if role.slow && role.name == name && replies < 2 {
			a.Delay += 300 * time.Millisecond
		}
	}
	return a
}

// processOf is the process that sent the request.
func processOf(r *providertest.Request) string { return r.Header.Get("X-Api-Key") }

func call(name string, a args) providertest.Call {
	return providertest.Call{Name: name, Arguments: arguments(a)}
}

// spawns are calls that start those workers whose requester it is.
func (c *chat) spawns(requester string) (calls []providertest.Call) {
	for _, role := range c.roles() {
		if role.requester != requester {
			continue
		}
		a := args{"task": c.worker(role.name), "label": c.worker(role.name)}
		if c.kind == chatEach {
			a["announce"] = "each"
		}
		calls = append(calls, call("sessions_spawn", a))
	}
	return calls
}

func (c *chat) playMain(r *providertest.Request, replies int) (a providertest.Answer) {
	switch {
	case strings.Contains(r.NewestText(), "[Subagent:"):
		a.Text = "all told"
	case replies == 0:
		a.Calls = c.spawns("")
	case replies == 1 && c.kind == chatAwaited:
		a.Calls = append(a.Calls, call("subagents", args{"action": "wait"}))
	case replies == 1 && c.kind == chatControl:
		a.Calls = append(a.Calls,
			call("subagents", args{"action": "steer", "id": c.worker("w0"), "message": c.steered()}),
			call("subagents", args{"action": "cancel", "id": c.worker("w1")}))
	case replies == 1 && c.kind == chatFell:
		a.Calls = append(a.Calls, call("subagents", args{"action": "cancel", "id": c.worker("boss")}))
	default:
		a.Text = "started"
	}
	return a
}

// playBoss starts two workers and has a result once it was told both theirs.
func (c *chat) playBoss(r *providertest.Request, replies int) (a providertest.Answer) {
	told := func(name string) bool {
		head := "[Subagent: " + c.worker(name) + "]"
		for _, m := range r.Messages {
			if strings.Contains(m.PlainText(), head) {
				return true
			}
			for _, p := range m.Parts {
				if p.Result != nil && strings.Contains(p.Result.Content, head) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case replies == 0:
		a.Calls = c.spawns("boss")
	case replies == 1 && c.kind == chatWaiting:
		a.Calls = append(a.Calls, call("subagents", args{"action": "wait"}))
	case told("a") && told("b"):
		a.Text = c.result("boss")
	default:
		a.Text = "not yet"
	}
	return a
}

// playWorker appends a line of its own to a file, looks at the workspace, and
// reports.
func (c *chat) playWorker(name string, replies int, effects bool) (a providertest.Answer) {
	switch {
	case replies == 0 && effects:
		a.Calls = append(a.Calls, call("exec", args{"command": "echo " + c.worker(name) + " >> " + effectsFile}), call("ls", args{}))
	case replies < 2:
		a.Calls = append(a.Calls, call("ls", args{}), call("glob", args{"pattern": "*"}))
	default:
		a.Text = c.result(name)
	}
	return a
}

func (c *chat) result(name string) string { return "result of " + c.worker(name) }
