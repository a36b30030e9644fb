package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/edge/provider/providertest"
)

// The named points at which the program kills itself, before and after every
// commit and every effect.
var failpoints = []string{
	"commit.before", "commit.after", "model.before", "model.after", "tool.before", "tool.after",
}

const (
	pointPatience = 3 * time.Second // a point that is not reached by then is given up for a kill
	siteLimit     = 3 * time.Minute // a round that takes longer hangs
)

// effectsFile gets a line from every worker.
const effectsFile = "effects.txt"

// site is where one round happens: processes, their database and workspace,
// their model server, the people who talk with them.
type site struct {
	t         *testing.T
	top       topology
	dir       string
	workspace string
	dice      *dice
	records   records
	model     *providertest.Server
	web       *http.Client
	seats     []*seat
	effects   bool
	play      providertest.Script // plays the models instead of chats
	over      chan struct{}       // closed when all chats have ended

	mu       sync.Mutex
	left     int // faults to come
	due      int // processes that have one before them
	points   int // of the planned kills
	randoms  int
	chats    []*chat
	arrivals map[int]time.Time        // of the model's requests, by number
	asked    map[string]chan struct{} // closed by a process's first request
	faults   []fault
}

// seat is a place for a process: a home.
type seat struct {
	name string
	role string
	home string

	mu    sync.Mutex
	lives int
	url   string // of a gateway, also of one that is dead
}

// fault is something that happened to a process.
type fault struct {
	process string // its model key
	kill    bool
	point   bool
	at, end time.Time // of a pause; a kill has no end
	since   time.Time // from when its recovery is timed
	held    []string  // the runs it had under way
}

func newSite(t *testing.T, top topology, dir string, from stock, d *dice, effects bool) (*site, error) {
	s := &site{
		t: t, top: top, dir: dir, workspace: filepath.Join(dir, "workspace"), dice: d, effects: effects,
		web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}, over: make(chan struct{}),
		arrivals: map[int]time.Time{}, asked: map[string]chan struct{}{},
	}
	for i, role := range top.seats {
		seat := &seat{name: fmt.Sprintf("%s%d", role, i+1), role: role}
		seat.home = filepath.Join(dir, seat.name)
		s.seats = append(s.seats, seat)
		settings := fmt.Sprintf(`{"agents": {"defaults": {"workspace": %q,
			"subagents": {"maxSpawnDepth": 2, "maxConcurrent": 12, "announceMaxWaitSeconds": 1}}}}`, s.workspace)
		err := os.MkdirAll(seat.home, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(seat.home, "goclaw.json"), []byte(settings), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	// What a command makes anew at the workspace's root appears when it ends. In
	// a file that is there its line stands at once, whatever happens then.
	err := os.Mkdir(s.workspace, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.workspace, effectsFile), nil, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if s.records, err = from.fresh(t.Context(), s.seats[0].home); err != nil {
		return nil, err
	}
	s.model = providertest.New(s.answer)
	if _, err := s.model.Start(); err != nil {
		return nil, errors.Join(err, s.records.close())
	}
	return s, nil
}

func (s *site) close() {
	s.model.Close()
	s.web.CloseIdleConnections()
	if err := s.records.close(); err != nil {
		s.t.Error(err)
	}
}

// round lets people talk with the processes until all faults have happened and
// all that was asked is answered. Then the processes stop in order.
func (s *site) round() {
	var lives, people sync.WaitGroup
	for _, seat := range s.seats {
		lives.Go(func() { s.keep(seat) })
	}
	for range s.top.chats {
		people.Go(func() {
			for first := true; (first || s.pending()) && !s.t.Failed(); first = false {
				s.converse()
			}
		})
	}
	people.Wait()
	close(s.over)
	lives.Wait()
}

// keep starts a process again and again, until it is spared.
func (s *site) keep(seat *seat) {
	for !s.t.Failed() {
		p, doomed := s.plan()
		process, err := s.start(seat, p)
		if err != nil {
			s.t.Error(err)
			return
		}
		if !doomed {
			<-s.over
			s.stop(process)
			return
		}
		s.suffer(process, p)
		if s.dice.n(2) == 0 {
			wait(s.dice.between(0, crashLease*3/2), nil)
		}
	}
}

// plan is what shall befall a process: perhaps a pause, then death, at a named
// point or at some moment.
type plan struct {
	pause bool
	point string // name:n, or "" for some moment
}

// plan takes from the faults that are left; false if there are none.
func (s *site) plan() (p plan, doomed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return plan{}, false
	}
	s.left--
	s.due++
	if s.left > 0 && s.dice.n(s.top.sleepy) == 0 {
		s.left--
		p.pause = true
	}
	if s.points < s.randoms || s.points == s.randoms && s.dice.n(2) == 0 {
		s.points++
		points := s.top.points
		if points == nil {
			points = failpoints
		}
		p.point = fmt.Sprintf("%s:%d", points[s.dice.n(len(points))], 1+s.dice.n(s.top.passes))
	} else {
		s.randoms++
	}
	return p, true
}

// pending reports whether faults are to come.
func (s *site) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left+s.due > 0
}

// process is one life of a seat.
type process struct {
	seat  *seat
	key   string // its model key, by which its requests are known
	cmd   *exec.Cmd
	ready chan struct{} // closed when it is, or can't be any more
	done  chan struct{} // closed when it has ended
	asked chan struct{} // closed by its first model request
}

func (s *site) start(seat *seat, p plan) (*process, error) {
	seat.lives++
	proc := &process{
		seat: seat, key: fmt.Sprintf("%s.%d", seat.name, seat.lives),
		ready: make(chan struct{}), done: make(chan struct{}), asked: make(chan struct{}),
	}
	env := append(s.records.env(), "ANTHROPIC_API_KEY="+proc.key, "ANTHROPIC_BASE_URL="+s.model.URL(),
		"GOCLAW_TOKEN=secret")
	if s.top.lease != 0 {
		env = append(env, lease+"="+s.top.lease.String())
	}
	if p.point != "" {
		env = append(env, failpoint+"="+p.point)
	}
	args := []string{seat.role}
	if seat.role == "gateway" {
		args = append(args, "--addr", "127.0.0.1:0")
	}
	proc.cmd = program(s.t, seat.home, env, args...)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.log(seat), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	defer in.Close()
	fmt.Fprintf(log, "======== %s %s\n", proc.key, p.point)
	proc.cmd.Stdout, proc.cmd.Stderr = in, log
	s.mu.Lock()
	s.asked[proc.key] = proc.asked
	s.mu.Unlock()
	began := time.Now()
	if err := proc.cmd.Start(); err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = proc.cmd.Process.Kill() })
	s.restarted(seat, began)
	go func() {
		defer out.Close()
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n') // nothing, if it died before
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready"); ok {
			seat.mu.Lock()
			seat.url = strings.TrimSpace(url)
			seat.mu.Unlock()
		}
		close(proc.ready)
		_, _ = io.Copy(io.Discard, lines)
	}()
	go func() {
		_ = proc.cmd.Wait() // how it ended is looked at by whoever ended it
		close(proc.done)
	}()
	return proc, nil
}

func (s *site) log(seat *seat) string { return filepath.Join(s.dir, seat.name+".log") }

// wait waits for d, or until early is closed.
func wait(d time.Duration, early <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-early:
	}
}

// suffer lets the plan befall the process.
func (s *site) suffer(p *process, what plan) {
	if what.pause {
		s.moment(p)
		s.freeze(p)
	}
	point := what.point != ""
	if point {
		wait(pointPatience, p.done)
	} else {
		s.moment(p)
	}
	select {
	case <-p.done:
	default:
		point = false
		_ = p.cmd.Process.Kill() // it may just have died at its point
	}
	<-p.done
	f := fault{process: p.key, kill: true, point: point, at: time.Now()}
	if !s.top.alone {
		f.since = f.at
	}
	if end, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !end.Signaled() || end.Signal() != syscall.SIGKILL {
		s.t.Errorf("%s ended by itself: %s\n%s", p.key, p.cmd.ProcessState, s.tail(p.seat))
	}
	s.suffered(p, f)
	s.mu.Lock()
	s.due--
	s.mu.Unlock()
}

// moment waits until some moment of the process's life: now and then while it
// starts, most often while it works.
func (s *site) moment(p *process) {
	if s.dice.n(5) == 0 {
		wait(s.dice.between(0, 250*time.Millisecond), p.done)
		return
	}
	select {
	case <-p.asked:
	case <-p.done:
	case <-time.After(pointPatience):
	}
	wait(s.dice.between(0, s.top.within), p.done)
}

// freeze stops the process for longer than its lease holds, unless it is dead.
func (s *site) freeze(p *process) {
	f := fault{process: p.key, at: time.Now()}
	select {
	case <-p.done:
		s.mu.Lock()
		s.left++ // somebody else's
		s.mu.Unlock()
		return
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	s.suffered(p, f)
	wait(time.Until(f.at.Add(s.dice.between(crashLease*6/5, 3*crashLease))), p.done)
	s.mu.Lock()
	i := slices.IndexFunc(s.faults, func(f fault) bool { return f.process == p.key && !f.kill })
	s.faults[i].end = time.Now()
	s.mu.Unlock()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
}

// suffered notes the fault, and what the process was at.
func (s *site) suffered(p *process, f fault) {
	held, err := s.records.held(p.cmd.Process.Pid)
	if err != nil {
		s.t.Errorf("after a fault the database can't be read: %v", err)
	}
	f.held = held
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// restarted notes from when on runs of a home can go on that nobody else runs.
func (s *site) restarted(seat *seat, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.kill && f.since.IsZero() && strings.HasPrefix(f.process, seat.name+".") {
			s.faults[i].since = at
		}
	}
}

// stop ends the process in order.
func (s *site) stop(p *process) {
	select {
	case <-p.done:
		s.t.Errorf("%s ended by itself: %s\n%s", p.key, p.cmd.ProcessState, s.tail(p.seat))
		return
	default:
	}
	<-p.ready
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	wait(30*time.Second, p.done)
	select {
	case <-p.done:
	default:
		s.t.Errorf("%s does not stop\n%s", p.key, s.tail(p.seat))
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("%s did not stop in order: exit %d\n%s", p.key, code, s.tail(p.seat))
	}
}

// tail is the end of what the seat's processes logged.
func (s *site) tail(seat *seat) string {
	b, err := os.ReadFile(s.log(seat))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-3000):])
}
