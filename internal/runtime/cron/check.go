package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw"
)

// The most that a person may write, in bytes; maxSeconds of a limit.
const (
	maxName    = 200
	maxMessage = 64 << 10
	maxID      = 64
	maxSeconds = 366 * 24 * 3600
)

// check says what is wrong with a job besides its schedule, and fills in what
// has a default.
func (s *Service) check(job *goclaw.CronJob) error {
	job.Name = strings.TrimSpace(job.Name)
	if job.Missed == "" {
		job.Missed = goclaw.MissedOnce
	}
	switch {
	case job.Name == "":
		return errors.New("the job needs a name")
	case len(job.Name) > maxName || strings.ContainsFunc(job.Name, unicode.IsControl) || !utf8.ValidString(job.Name):
		return fmt.Errorf("a job's name is one line of at most %d bytes", maxName)
	case strings.TrimSpace(job.Message) == "":
		return errors.New("the job needs a message: what the agent is to do")
	case len(job.Message) > maxMessage || !utf8.ValidString(job.Message):
		return fmt.Errorf("a job's message is UTF-8 of at most %d KB; put more into a file and name it", maxMessage>>10)
	case s.o.Agents != nil && !slices.Contains(s.o.Agents, job.Agent):
		return fmt.Errorf("there is no agent %q; there are: %s", job.Agent, strings.Join(s.o.Agents, ", "))
	case job.Missed != goclaw.MissedOnce && job.Missed != goclaw.MissedSkip:
		return fmt.Errorf("missed is %q; write once or skip", job.Missed)
	case job.Thinking != "" && !slices.Contains([]string{"off", "low", "medium", "high"}, job.Thinking):
		return fmt.Errorf("thinking is %q; write off, low, medium or high", job.Thinking)
	case job.Budget.Tokens < 0 || job.Budget.USD < 0 || job.Budget.Steps < 0 || job.Budget.Seconds < 0:
		return errors.New("a budget's limits can't be negative; 0 sets none")
	case job.TimeoutSeconds != nil && *job.TimeoutSeconds < 0:
		return errors.New("timeoutSeconds can't be negative; 0 sets none")
	case job.Budget.Seconds > maxSeconds, job.TimeoutSeconds != nil && *job.TimeoutSeconds > maxSeconds:
		return fmt.Errorf("a run takes at most a year, %d seconds; 0 sets no limit", maxSeconds)
	}
	if err := checkID(job.ID); err != nil {
		return err
	}
	return checkTarget(job)
}

func checkID(id string) error {
	ok := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	switch {
	case id == "" || len(id) > maxID || strings.Trim(id, "-") != id || strings.ContainsFunc(id, func(r rune) bool { return !ok(r) }):
		return fmt.Errorf("the id %q: use a-z, 0-9 and - between them, at most %d", id, maxID)
	case strings.HasPrefix(id, heartbeatPrefix):
		return fmt.Errorf("the id %s: %s begins those of heartbeats; choose another", id, heartbeatPrefix)
	}
	return nil
}

// checkTarget checks whose turn a firing is, and what only isolated runs have.
func checkTarget(job *goclaw.CronJob) error {
	switch job.Target {
	case goclaw.TargetMain:
		if job.Session.IsZero() {
			job.Session = goclaw.MainKey(job.Agent)
		}
		switch {
		case job.Definition != "":
			return errors.New("a turn of a session takes no definition; make the job's target isolated")
		case job.TimeoutSeconds != nil:
			return errors.New("a turn of a session takes no timeout; make the job's target isolated, or set budget.seconds")
		}
	case goclaw.TargetIsolated:
	default:
		return fmt.Errorf("target is %q; write main or isolated", job.Target)
	}
	switch {
	case job.Session.IsZero():
	case job.Session.IsWorker():
		return fmt.Errorf("the session %s is a worker's; name the session of a person", job.Session)
	case job.Session.Agent != job.Agent:
		return fmt.Errorf("the session %s is not one of the agent %s", job.Session, job.Agent)
	}
	return nil
}
