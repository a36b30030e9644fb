package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/turn"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// kills is how often the crash test kills the program: GOCLAW_CRASH_KILLS, or
// few enough for every run of the suite.
func kills(t *testing.T) int {
	s := os.Getenv("GOCLAW_CRASH_KILLS")
	if s == "" {
		return 10
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("GOCLAW_CRASH_KILLS: %v", err)
	}
	return n
}

// The named points at which the program kills itself, before and after every
// commit and every effect.
var failpoints = []string{
	"commit.before", "commit.after", "model.before", "model.after", "tool.before", "tool.after",
}

const crashWorkers = 5

// TestCrash kills the gateway (SIGKILL) while five workers run, half of the
// times at a random instant and half at a named point, starts it again, and
// holds what became of the runs against what was promised: nothing accepted is
// lost, every result is announced exactly once, no recorded model call is paid
// again, and no call with side effects is executed twice.
func TestCrash(t *testing.T) {
	box, why := sandbox.Detect(t.Context())
	if box == nil {
		t.Logf("NO SANDBOX (%s): the workers have no side effects in this run", why)
	}
	total := kills(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var sum tally
	for sum.kills < total {
		c := newCrash(t, rnd, box != nil)
		c.round(&sum, total)
		if t.Failed() {
			t.Fatalf("in the round after %d kills", sum.kills)
		}
	}
	t.Logf("%d kills (%d at named points), %d runs, 0 lost, %d announced once each, %d side effects, 0 twice, %d with unknown outcome",
		sum.kills, sum.atPoints, sum.runs, sum.announced, sum.effects, sum.unknown)
	t.Logf("0 recorded model calls paid again; %d unrecorded ones were made again", sum.repeated)
	t.Logf("worst time from restart to the next model request of a resumed run: %s", sum.slowest.Round(time.Millisecond))
	if sum.slowest > 2*time.Second {
		t.Errorf("a run went on only %s after the restart; want at most 2 s", sum.slowest)
	}
}

type tally struct {
	kills, atPoints, runs, announced, effects, unknown, repeated int
	slowest                                                      time.Duration
}

// crash is one home, one message, and as many kills as the dice say.
type crash struct {
	t       *testing.T
	rnd     *rand.Rand
	home    string
	model   *providertest.Server
	effects bool
	key     goclaw.SessionKey

	mu       sync.Mutex
	arrivals []time.Time // of the model requests, in order
}

func newCrash(t *testing.T, rnd *rand.Rand, effects bool) *crash {
	c := &crash{t: t, rnd: rnd, home: filepath.Join(t.TempDir(), "home"), effects: effects, key: goclaw.MainKey("main")}
	c.model = providertest.New(c.answer)
	if _, err := c.model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.model.Close)
	return c
}

// answer plays the models. Workers append a line of their own to a file, look
// at the workspace, and report.
func (c *crash) answer(r *providertest.Request) providertest.Answer {
	c.mu.Lock()
	c.arrivals = append(c.arrivals, time.Now())
	c.mu.Unlock()
	a := providertest.Answer{Delay: 10 * time.Millisecond}
	replies := assistants(r.Messages)
	switch {
	case r.Worker() && replies == 0 && c.effects:
		a.Calls = []providertest.Call{
			{Name: "exec", Arguments: fmt.Sprintf(`{"command":"echo %s >> effects.txt"}`, r.Task())},
			{Name: "ls", Arguments: `{}`},
		}
	case r.Worker() && replies < 2:
		a.Calls = []providertest.Call{{Name: "ls", Arguments: `{}`}, {Name: "glob", Arguments: `{"pattern":"*"}`}}
	case r.Worker():
		a.Text = "result of " + r.Task()
	case strings.Contains(r.NewestText(), "[Subagent:"):
		a.Text = "all told"
	case replies == 0:
		for i := range crashWorkers {
			a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: fmt.Sprintf(`{"task":"w%d","label":"w%d"}`, i, i)})
		}
	default:
		a.Text = "started"
	}
	return a
}

func assistants(msgs []goclaw.Message) int {
	n := 0
	for _, m := range msgs {
		if m.Role == goclaw.RoleAssistant {
			n++
		}
	}
	return n
}

func (c *crash) round(sum *tally, most int) {
	deaths := min(1+c.rnd.IntN(2), most-sum.kills)
	var recorded record
	for range deaths {
		point := ""
		if c.rnd.IntN(2) == 0 {
			point = fmt.Sprintf("%s:%d", failpoints[c.rnd.IntN(len(failpoints))], 1+c.rnd.IntN(12))
			sum.atPoints++
		}
		c.live(sum, recorded, point, time.Duration(c.rnd.IntN(250))*time.Millisecond)
		sum.kills++
		recorded = c.recorded()
	}
	c.live(sum, recorded, "", 0)
	c.check(sum)
}

// live starts the gateway, sends the message (again: it has a key), and lets
// it be killed at the point, or after the delay, or, with neither, waits until
// all is answered.
func (c *crash) live(sum *tally, recorded record, point string, after time.Duration) {
	c.t.Helper()
	from := c.model.Total()
	var env []string
	if point != "" {
		env = append(env, failpoint+"="+point)
	}
	began := time.Now()
	gw, url := c.gateway(env)
	final := point == "" && after == 0
	if url != "" {
		api := client.New(url, "secret", nil)
		ctx, cancel := context.WithTimeout(c.t.Context(), 60*time.Second)
		defer cancel()
		receipt, err := api.Receive(ctx, goclaw.Inbound{Session: c.key, Text: "start", Key: "once"})
		switch {
		case final && err != nil:
			c.t.Fatalf("the restarted gateway refused the message: %v", err)
		case final:
			out, err := api.Await(ctx, receipt.Run.ID, true)
			if err != nil || out.Unfinished != 0 || len(out.Runs) != crashWorkers {
				c.t.Fatalf("after the restart: %v; %d workers, %d unfinished", err, len(out.Runs), out.Unfinished)
			}
		}
	}
	if final {
		if err := gw.Process.Signal(os.Interrupt); err != nil {
			c.t.Fatal(err)
		}
		if err := gw.Wait(); err != nil {
			c.t.Fatalf("the gateway did not stop in order: %v", err)
		}
	} else {
		c.die(gw, point, after)
	}
	c.afterRestart(sum, recorded, from, began)
}

// gateway starts the program; url is empty if it died before it served.
func (c *crash) gateway(env []string) (*exec.Cmd, string) {
	c.t.Helper()
	env = append(env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+c.model.URL(), "GOCLAW_TOKEN=secret")
	cmd := program(c.t, c.home, env, "gateway", "--addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(c.home), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ok {
		return cmd, ""
	}
	return cmd, url
}

func (c *crash) die(gw *exec.Cmd, point string, after time.Duration) {
	c.t.Helper()
	if point != "" {
		after = 2 * time.Second // the point may never be reached
	}
	done := make(chan struct{})
	killer := time.AfterFunc(after, func() { _ = gw.Process.Kill() })
	go func() {
		defer close(done)
		_ = gw.Wait()
	}()
	<-done
	killer.Stop()
}

// name identifies a model call: whose it is, and how many replies came before.
func name(who string, replies int) string { return fmt.Sprintf("%s#%d", who, replies) }

// record is what a dead process left.
type record struct {
	calls   map[string]bool // the model calls that are on record
	unended int
}

func (c *crash) recorded() record {
	c.t.Helper()
	rec := record{calls: map[string]bool{}}
	c.store(func(ctx context.Context, s *sqlite.Store) error {
		main := 0
		runs, err := s.Runs(ctx, goclaw.RunFilter{})
		if err != nil {
			return err
		}
		slices.Reverse(runs)
		for _, r := range runs {
			if !r.State.Ended() {
				rec.unended++
			}
			events, err := s.Events(ctx, r.ID)
			if err != nil {
				return err
			}
			n := len(turn.Fold(events).Steps)
			for i := range n {
				if r.Trigger == goclaw.TriggerSpawn {
					rec.calls[name(r.Label, i)] = true
				} else {
					rec.calls[name("main", main+i)] = true
				}
			}
			if r.Trigger != goclaw.TriggerSpawn {
				main += n
			}
		}
		return nil
	})
	return rec
}

// afterRestart holds the requests of one life against what was on record when
// it began.
func (c *crash) afterRestart(sum *tally, rec record, from int, began time.Time) {
	c.t.Helper()
	requests := c.model.Requests()
	seen := map[string]bool{}
	for i, r := range requests {
		who := "main"
		if r.Worker() {
			who = r.Task()
		}
		id := name(who, assistants(r.Messages))
		if i < from {
			seen[id] = true
			continue
		}
		if rec.calls[id] {
			c.t.Errorf("the recorded model call %s was paid again", id)
		}
		if seen[id] {
			sum.repeated++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if rec.unended > 0 && len(c.arrivals) > from {
		sum.slowest = max(sum.slowest, c.arrivals[from].Sub(began))
	}
}

func (c *crash) store(use func(context.Context, *sqlite.Store) error) {
	c.t.Helper()
	file := filepath.Join(c.home, "goclaw.db")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return
	}
	s, err := sqlite.Open(c.t.Context(), file, sqlite.Options{})
	if err != nil {
		c.t.Fatalf("after a kill the database can't be opened: %v", err)
	}
	if err := errors.Join(use(c.t.Context(), s), s.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// check holds the end of the round against the promises.
func (c *crash) check(sum *tally) {
	c.t.Helper()
	c.store(func(ctx context.Context, s *sqlite.Store) error {
		runs, err := s.Runs(ctx, goclaw.RunFilter{})
		if err != nil {
			return err
		}
		workers := 0
		for _, r := range runs {
			sum.runs++
			if r.State != goclaw.StateCompleted {
				c.t.Errorf("%s %s ended %s: %s", r.Trigger, r.Name(), r.State, r.Error)
			}
			if r.Trigger == goclaw.TriggerSpawn {
				workers++
				if err := c.checkEffects(ctx, s, r, sum); err != nil {
					return err
				}
			}
		}
		if workers != crashWorkers {
			c.t.Errorf("%d workers were spawned, want %d", workers, crashWorkers)
		}
		return c.checkTranscript(ctx, s, sum)
	})
}

func (c *crash) checkTranscript(ctx context.Context, s *sqlite.Store, sum *tally) error {
	logs, err := s.History(ctx, c.key, 0)
	if err != nil {
		return err
	}
	var said strings.Builder
	for _, m := range turn.Transcript(logs) {
		said.WriteString(m.PlainText())
	}
	requests := c.model.Requests()
	for i := range crashWorkers {
		head := fmt.Sprintf("[Subagent: w%d] Complete.\n\nresult of w%d\n", i, i)
		if n := strings.Count(said.String(), head); n != 1 {
			c.t.Errorf("w%d is announced %d times in the transcript", i, n)
		}
		if !slices.ContainsFunc(requests, func(r providertest.Recorded) bool {
			return !r.Worker() && strings.Contains(r.NewestText(), head)
		}) {
			c.t.Errorf("the result of w%d is in no request", i)
		}
		sum.announced++
	}
	return nil
}

// checkEffects counts the lines that the workers appended. A call that is on
// record as done has had its effect once; one that was interrupted, at most.
func (c *crash) checkEffects(ctx context.Context, s *sqlite.Store, r goclaw.Run, sum *tally) error {
	if !c.effects {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(c.home, "workspace", "effects.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n := 0
	for _, l := range strings.Fields(string(b)) {
		if l == r.Label {
			n++
		}
	}
	sum.effects += n
	if n > 1 {
		c.t.Errorf("the side effect of %s happened %d times", r.Label, n)
	}
	events, err := s.Events(ctx, r.ID)
	if err != nil {
		return err
	}
	for _, res := range turn.Fold(events).Steps[0].Results {
		switch {
		case res.Name != "exec":
		case strings.Contains(res.Content, "outcome is unknown"):
			sum.unknown++
		case res.IsError:
			c.t.Errorf("exec of %s failed: %s", r.Label, res.Content)
		case n == 0:
			c.t.Errorf("exec of %s is on record as done, and its side effect is missing", r.Label)
		}
	}
	return nil
}
