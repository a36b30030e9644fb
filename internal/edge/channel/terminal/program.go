package terminal

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw"
)

// program shows a state with Bubble Tea and carries out its effects. It starts
// its own goroutines instead of returning commands, because Bubble Tea does
// not wait for those.
type program struct {
	pump    pump
	options Options
	state   *state
	tea     *tea.Program
	ticking bool

	// start runs a function in a goroutine that Run waits for; its context
	// ends when the screen does.
	start func(func(context.Context))
}

// Init starts the pump.
func (p *program) Init() tea.Cmd {
	p.state.now = p.options.Now()
	p.start(p.pump.run)
	return nil
}

// Update changes the state, then does what the change asks for.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	s := p.state
	s.now = p.options.Now()
	var todo []effect
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		if m.Width > 0 && m.Height > 0 {
			s.resize(m.Width, m.Height)
		}
	case tea.ModeReportMsg:
		// The renderer measures as the terminal says it does; so must we.
		if m.Mode == ansi.ModeUnicodeCore && !m.Value.IsNotRecognized() && !m.Value.IsPermanentlyReset() {
			s.measure(ansi.GraphemeWidth)
		}
	case tea.KeyPressMsg:
		text := m.Text
		if m.Mod&(tea.ModCtrl|tea.ModAlt|tea.ModMeta|tea.ModSuper|tea.ModHyper) != 0 {
			text = ""
		}
		todo = s.key(m.Keystroke(), text)
	case tea.PasteMsg:
		s.paste(m.Content)
	case tea.MouseWheelMsg:
		switch m.Button {
		case tea.MouseWheelUp:
			s.scroll(-wheelLines)
		case tea.MouseWheelDown:
			s.scroll(wheelLines)
		}
	case noticesMsg:
		for _, n := range m {
			s.apply(n)
		}
	case loadedMsg:
		s.load(m)
	case linkMsg:
		s.connection(m)
	case sentMsg:
		todo = s.sent(m)
	case commandedMsg:
		s.commanded(m)
	case refreshedMsg:
		s.refreshedBy(m)
	case cancelledMsg:
		s.cancelled(m)
	case tickMsg:
		p.ticking = false
	}
	return p, p.perform(append(todo, s.refresh()...))
}

// perform carries out effects.
func (p *program) perform(todo []effect) tea.Cmd {
	var cmd tea.Cmd
	for _, e := range todo {
		switch e := e.(type) {
		case sendEffect:
			if e.key == "" {
				e.key = rand.Text()
			}
			p.start(func(ctx context.Context) {
				receipt, err := p.receive(ctx, e.text, e.key)
				p.tea.Send(sentMsg{id: e.id, key: e.key, receipt: receipt, err: err})
			})
		case commandEffect:
			p.start(func(ctx context.Context) {
				receipt, err := p.receive(ctx, string(e), rand.Text())
				p.tea.Send(commandedMsg{string(e), receipt, err})
			})
		case cancelEffect:
			p.start(func(ctx context.Context) { p.tea.Send(cancelledMsg{e.run, p.pump.backend.Cancel(ctx, e.run)}) })
		case refreshEffect:
			p.start(func(ctx context.Context) { p.tea.Send(p.pump.look(ctx)) })
		case redrawEffect:
			cmd = tea.ClearScreen
		case quitEffect:
			cmd = tea.Quit
		}
	}
	p.tick()
	return cmd
}

func (p *program) receive(ctx context.Context, text, key string) (goclaw.Receipt, error) {
	return p.pump.backend.Receive(ctx, goclaw.Inbound{Session: p.options.Session, Text: text, Key: key})
}

// tick has the screen drawn again soon while it shows a passing time.
func (p *program) tick() {
	if p.ticking || !p.state.busy() {
		return
	}
	p.ticking = true
	interval := time.Second / 2
	if p.state.spinning() {
		interval = time.Second / 10
	}
	p.start(func(ctx context.Context) {
		if sleep(ctx, interval) {
			p.tea.Send(tickMsg{})
		}
	})
}

// View draws the state.
func (p *program) View() tea.View {
	f := p.state.view()
	v := tea.NewView(strings.Join(f.lines, "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	if p.state.question() == nil {
		v.Cursor = tea.NewCursor(f.cx, f.cy)
	}
	return v
}
