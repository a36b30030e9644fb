package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"goclaw"
)

// Backend is the gateway that the screen talks to. Its methods are called
// concurrently and return soon after their context ends.
type Backend interface {
	// Receive takes a message or a slash command. Its error is shown, and the
	// message given back to its author.
	Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error)

	// Notices tells what happens in session and in the runs that it asked
	// for. The channel closes when ctx ends or the connection is lost.
	Notices(ctx context.Context, session goclaw.SessionKey) (<-chan goclaw.Notice, error)

	// Cancel cancels a run and its descendants.
	Cancel(ctx context.Context, runID string) error

	Record
}

// Record tells what is the case: at the start, and where notices were missed
// or tell nothing.
type Record interface {
	// History returns the runs of session since its last reset, oldest first.
	History(ctx context.Context, session goclaw.SessionKey) ([]goclaw.RunLog, error)

	// Workers returns the unended runs that session asked for, and those that
	// these asked for, each after the one that did.
	Workers(ctx context.Context, session goclaw.SessionKey) ([]goclaw.RunInfo, error)

	Status(ctx context.Context) (goclaw.Status, error)
}

// Options say what is shown, and where.
type Options struct {
	Session goclaw.SessionKey
	Model   string // provider/model, until a run tells another
	Demo    bool   // the offline demonstration model answers
	Version string

	// Notices are shown at the start, one paragraph each.
	Notices []string

	Input   io.Reader        // default: standard input
	Output  io.Writer        // default: standard output
	Now     func() time.Time // default: time.Now
	NoColor bool             // as is NO_COLOR in the environment
}

// Run shows the chat until its user leaves or ctx ends; both return nil. An
// error means that the terminal could not be used, or that the screen crashed.
// When it returns the terminal is restored, and nothing else was printed; runs
// under way go on.
func Run(ctx context.Context, b Backend, o Options) error {
	return run(ctx, b, o)
}

func run(ctx context.Context, b Backend, o Options, extra ...tea.ProgramOption) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, stop := context.WithCancel(ctx)
	var opts []tea.ProgramOption
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		opts = append(opts, tea.WithOutput(o.Output))
	}
	if o.NoColor {
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	}
	var wg sync.WaitGroup
	p := &program{options: o, state: newState(o)}
	p.tea = tea.NewProgram(p, append(opts, extra...)...)
	p.pump = pump{backend: b, session: o.Session, send: p.tea.Send}
	p.start = func(f func(context.Context)) { wg.Go(func() { f(ctx) }) }
	p.start(func(ctx context.Context) {
		<-ctx.Done()
		p.tea.Quit()
	})
	_, err := p.tea.Run()
	stop()
	wg.Wait()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
