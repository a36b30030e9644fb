package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw"
)

// spinner turns once a second.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

func (s *state) spin() string {
	frames := []rune(spinner)
	return string(frames[int(s.now.UnixMilli()/100)%len(frames)])
}

// panel draws the workers in height lines, the first of them a heading.
func (s *state) panel(height int) []string {
	ps := s.places()
	if height < 1 || len(ps) == 0 {
		return nil
	}
	out := []string{s.panelHead(ps, height-1)}
	at := slices.IndexFunc(ps, func(p place) bool { return p.run.RunID == s.selected })
	first := max(0, min(at-(height-1)/2, len(ps)-(height-1)))
	name, model := 0, 0
	for _, p := range ps {
		name = max(name, p.indent()+s.method().StringWidth(oneLine(p.run.Label)))
		model = max(model, s.method().StringWidth(shortModel(p.run.Model)))
	}
	name, model = min(name, max(6, s.width/4)), min(model, s.width/5)
	for _, p := range ps[first:min(len(ps), first+height-1)] {
		out = append(out, s.workerRow(p, name, model).fit(s.method(), s.width).String())
	}
	return out
}

// indent is how far to the right p stands, in cells.
func (p place) indent() int { return 2 * min(p.level, 4) }

// panelHead counts the workers by what they do.
func (s *state) panelHead(ps []place, rows int) string {
	count := map[string]int{}
	for _, p := range ps {
		switch r := p.run; {
		case r.Status.Ended():
			count["ended"]++
		case asks(r):
			count["waiting for you"]++
		case r.Status == goclaw.StateWaiting, r.Status == goclaw.StateQueued:
			count[string(r.Status)]++
		default:
			count["running"]++
		}
	}
	var parts []string
	for _, what := range []string{"waiting for you", "running", "waiting", "queued", "ended"} {
		if n := count[what]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+what)
		}
	}
	label := " workers: " + strings.Join(parts, ", ") + " "
	if rows < len(ps) {
		label += fmt.Sprintf("(%d shown) ", rows)
	}
	return s.bar(label, bold)
}

// bar is a line across the screen with a label in it.
func (s *state) bar(label string, st style) string {
	w := max(0, s.width-s.method().StringWidth(label)-2)
	l := line{{"──", dim}, {label, st}, {strings.Repeat("─", w), dim}}
	return l.fit(s.method(), s.width).String()
}

// workerRow is one worker: state, name, model, time, tokens, what it does. name
// and model are the widths of these columns.
func (s *state) workerRow(p place, name, model int) line {
	m := s.method()
	glyph, st := s.glyph(p.run)
	mark, label := "  ", plain
	if p.run.RunID == s.selected {
		mark, label = "▶ ", bold.and(reverse)
	}
	in := strings.Repeat(" ", p.indent())
	l := line{{mark, cyan}, {in + glyph + " ", st}, {pad(m, oneLine(p.run.Label), name-len(in)), label}}
	if s.width >= 60 {
		l = append(l, span{"  " + pad(m, shortModel(p.run.Model), model), dim})
	}
	l = append(l, span{fmt.Sprintf("  %6s", s.elapsed(p.run)), plain})
	if s.width >= 44 {
		l = append(l, span{fmt.Sprintf("  %10s", tokens(p.run.Usage)), dim})
	}
	doing, dst := p.doing()
	return append(l, span{"  " + doing, dst})
}

// doing says what the worker does, or how it ended.
func (w *worker) doing() (string, style) {
	switch r := w.run; {
	case r.Status == goclaw.StateCompleted:
		return oneLine(firstLine(strings.TrimSpace(r.Result))), dim
	case r.Status.Ended():
		return oneLine(ending(r)), red
	case w.cancelling:
		return "cancelling…", yellow
	case idle(r) == "":
		return oneLine(w.activity), dim
	case asks(r), r.Status == goclaw.StateInterrupted:
		return idle(r), yellow
	default:
		return idle(r), dim
	}
}

// idle says why an unended run does nothing; "" if it does something.
func idle(r goclaw.RunInfo) string {
	switch {
	case r.Status == goclaw.StateInterrupted:
		return "interrupted, will resume"
	case r.Status == goclaw.StateQueued && r.Position > 0:
		return "queued, position " + strconv.Itoa(r.Position)
	case r.Status == goclaw.StateQueued:
		return "queued"
	case asks(r):
		return "waits for you"
	case r.Status == goclaw.StateWaiting:
		return "waits for its workers"
	}
	return ""
}

func (s *state) glyph(r goclaw.RunInfo) (string, style) {
	switch {
	case r.Status == goclaw.StateCompleted:
		return "✓", green
	case r.Status.Ended():
		return "✗", red
	case asks(r):
		return "?", bold.and(yellow)
	case r.Status == goclaw.StateInterrupted:
		return "‖", yellow
	case r.Status == goclaw.StateWaiting:
		return "◌", dim
	case r.Status == goclaw.StateQueued:
		return "○", dim
	}
	return s.spin(), cyan
}

// elapsed is how long a run has been going, or took.
func (s *state) elapsed(r goclaw.RunInfo) string {
	from := r.StartedAt
	if from == 0 {
		from = r.CreatedAt
	}
	to := r.FinishedAt
	if to == 0 {
		to = goclaw.At(s.now)
	}
	if from == 0 || to < from {
		return "0s"
	}
	switch sec := (to - from) / 1000; {
	case sec < 60:
		return fmt.Sprintf("%ds", sec)
	case sec < 3600:
		return fmt.Sprintf("%dm%02ds", sec/60, sec%60)
	default:
		return fmt.Sprintf("%dh%02dm", sec/3600, sec/60%60)
	}
}

// tokens is the sum of a usage, short.
func tokens(u goclaw.Usage) string {
	n := u.Input + u.Output
	switch {
	case n == 0:
		return ""
	case n < 1000:
		return fmt.Sprintf("%d tok", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk tok", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM tok", float64(n)/1_000_000)
}

// shortModel is a model's name without its provider and its date.
func shortModel(model string) string {
	model = oneLine(model)
	model = model[strings.LastIndexByte(model, '/')+1:]
	if i := strings.LastIndexByte(model, '-'); i > 0 && len(model)-i == 9 && strings.Trim(model[i+1:], "0123456789") == "" {
		model = model[:i]
	}
	return model
}
