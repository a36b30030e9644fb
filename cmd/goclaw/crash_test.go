package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/internal/edge/tool/exec/sandbox"
)

// The crash check kills and freezes the program while agents and their workers
// run, and holds what became of the runs against what was promised: nothing
// accepted is lost, every result is announced exactly once, no recorded model
// call is paid again, no call with side effects is executed twice.
//
// GOCLAW_CRASH_KILLS is how many faults there are on SQLite; PostgreSQL gets
// three for five of these. GOCLAW_CRASH_DIR keeps what a failed round leaves.

// crashLease is how long the processes' leases hold.
const crashLease = time.Second

// topology is which processes there are, and what they are put through.
type topology struct {
	seats    []string      // gateway or worker
	lease    time.Duration // 0: the product's own
	parallel int           // rounds at a time
	faults   int           // in a round, about
	chats    int           // under way at a time

	within time.Duration // of a process's first request most random faults come
	passes int           // of a named point before the process dies there, at most
	sleepy int           // one life of so many has a pause in it
	points []string      // the named ones; nil: all failpoints

	// A fault's recovery is timed from the next start where only that process
	// can go on, else from the fault itself, and takes limit at most.
	alone bool
	limit time.Duration
}

var (
	oneProcess = topology{
		seats: []string{"gateway"}, lease: crashLease, parallel: 2, faults: 5, chats: 2, within: 250 * time.Millisecond, passes: 12, sleepy: 6,
		alone: true, limit: 5 * time.Second,
	}
	fiveProcesses = topology{
		seats: []string{"gateway", "gateway", "worker", "worker", "worker"},
		lease: crashLease, parallel: 1, faults: 12, chats: 5, within: 500 * time.Millisecond, passes: 8, sleepy: 3,
		limit: 5*time.Second + crashLease,
	}
)

func TestCrash(t *testing.T) {
	crash(t, oneProcess, crashFaults(t, 10), stockSQLite(t))
}

func TestCrashPostgres(t *testing.T) {
	crash(t, fiveProcesses, crashFaults(t, 20)*3/5, stockPostgres(t))
}

// crashFaults is how many faults there shall be.
func crashFaults(t *testing.T, few int) int {
	t.Helper()
	s := os.Getenv("GOCLAW_CRASH_KILLS")
	if s == "" {
		return few
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("GOCLAW_CRASH_KILLS: %v", err)
	}
	return n
}

func crash(t *testing.T, top topology, total int, from stock) {
	box, why := sandbox.Detect(t.Context())
	if box == nil {
		t.Logf("NO SANDBOX (%s): the workers have no side effects in this run", why)
	}
	sum := &tally{}
	took := rounds(t, top, total, from, box != nil, func(s *site) {
		s.round()
		s.check(sum)
	})
	sum.report(t, top, took)
}

// rounds deals faults out to rounds, each on fresh homes and a fresh database,
// some of them at a time, and says how long it took.
func rounds(t *testing.T, top topology, total int, from stock, effects bool, round func(*site)) time.Duration {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := &dice{rnd: rand.New(rand.NewPCG(seed, 1))}
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(total))
	take := func() int {
		n := top.faults - 1 + d.n(3)
		return n + min(0, int(left.Add(int64(-n)))) // what falls below zero is not there
	}
	var all sync.WaitGroup
	for range top.parallel {
		all.Go(func() {
			for n := take(); n > 0 && !t.Failed(); n = take() {
				if err := oneRound(t, top, n, from, d, effects, round); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// oneRound is a round with n faults. What a failed one leaves is kept.
func oneRound(t *testing.T, top topology, n int, from stock, d *dice, effects bool, round func(*site)) error {
	dir, err := siteDir(t)
	if err != nil {
		return err
	}
	s, err := newSite(t, top, dir, from, d, effects)
	if err != nil {
		return err
	}
	defer s.close()
	s.left = n
	round(s)
	if t.Failed() {
		t.Logf("in the round in %s", dir)
		return nil
	}
	return os.RemoveAll(dir)
}

// siteDir makes a folder for a site.
func siteDir(t *testing.T) (string, error) {
	base := os.Getenv("GOCLAW_CRASH_DIR")
	if base == "" {
		base = t.TempDir()
	}
	dir, err := os.MkdirTemp(base, "round-")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// dice are rolled by many at a time.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

// n is a number below most.
func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(most)
}

// between is a time from a to b.
func (d *dice) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.n(int(b-a)))
}

// figures are what a round, or all of them, came to.
type figures struct {
	kills, atPoints, pauses int
	busy                    int // faults that hit a process with runs under way
	chats, runs             int
	announced, steered      int
	effects, unknown        int
	calls                   int // recorded model calls
	repeated                int // unrecorded ones that were made again
	late                    int // made by a process that slept while another recorded the call
	takeovers               int
	slowest                 time.Duration
}

// tally is the sum of all rounds.
type tally struct {
	mu sync.Mutex
	figures
}

func (s *tally) add(f figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills += f.kills
	s.atPoints += f.atPoints
	s.pauses += f.pauses
	s.busy += f.busy
	s.chats += f.chats
	s.runs += f.runs
	s.announced += f.announced
	s.steered += f.steered
	s.effects += f.effects
	s.unknown += f.unknown
	s.calls += f.calls
	s.repeated += f.repeated
	s.late += f.late
	s.takeovers += f.takeovers
	s.slowest = max(s.slowest, f.slowest)
}

func (s *tally) report(t *testing.T, top topology, took time.Duration) {
	t.Helper()
	if t.Failed() {
		return
	}
	t.Logf("%d kills (%d at named points), %d pauses; %d of them hit a process with runs under way; %s",
		s.kills, s.atPoints, s.pauses, s.busy, took.Round(time.Second))
	t.Logf("%d messages, %d runs, 0 lost, %d announced once each, %d steered; %d side effects, 0 twice, %d with unknown outcome",
		s.chats, s.runs, s.announced, s.steered, s.effects, s.unknown)
	t.Logf("%d model calls recorded, 0 paid again by a process that could know; %d unrecorded ones were made again, %d were sent by a process that woke after another had recorded them",
		s.calls, s.repeated, s.late)
	from := "the fault"
	if top.alone {
		from = "the restart"
	}
	t.Logf("%d takeovers; worst time from %s to the next step of a run that the dead process held: %s", s.takeovers, from, s.slowest.Round(time.Millisecond))
	if s.slowest > top.limit && os.Getenv("GOCLAW_CRASH_KILLS") != "" { // the small check runs beside others, and with the race detector
		t.Errorf("a run went on only %s after %s; want at most %s", s.slowest, from, top.limit)
	}
	if s.kills+s.pauses > 20 && s.busy == 0 {
		t.Error("no fault hit a process at work: the check checks nothing")
	}
}
