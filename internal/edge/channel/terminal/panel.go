package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	ws := s.shownWorkers()
	if height < 1 || len(ws) == 0 {
		return nil
	}
	out := []string{s.panelHead(ws, height-1)}
	at := slices.IndexFunc(ws, func(w *worker) bool { return w.run.ID == s.selected })
	first := max(0, min(at-(height-1)/2, len(ws)-(height-1)))
	name, model := 0, 0
	for _, w := range ws {
		name = max(name, s.method().StringWidth(oneLine(w.run.Name())))
		model = max(model, s.method().StringWidth(shortModel(w.run.Profile.Model)))
	}
	name, model = min(name, max(6, s.width/4)), min(model, s.width/5)
	for _, w := range ws[first:min(len(ws), first+height-1)] {
		out = append(out, s.workerRow(w, name, model).fit(s.method(), s.width).String())
	}
	return out
}

// panelHead counts the workers by what they do.
func (s *state) panelHead(ws []*worker, rows int) string {
	var running, queued, ended int
	for _, w := range ws {
		switch {
		case w.run.State.Ended():
			ended++
		case w.run.State == goclaw.StateQueued:
			queued++
		default:
			running++
		}
	}
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{running, "running"}, {queued, "queued"}, {ended, "ended"}} {
		if c.n > 0 {
			parts = append(parts, strconv.Itoa(c.n)+" "+c.what)
		}
	}
	label := " workers: " + strings.Join(parts, ", ") + " "
	if rows < len(ws) {
		label += fmt.Sprintf("(%d shown) ", rows)
	}
	w := max(0, s.width-s.method().StringWidth(label)-2)
	l := line{{"──", dim}, {label, bold}, {strings.Repeat("─", w), dim}}
	return l.fit(s.method(), s.width).String()
}

// workerRow is one worker: state, name, model, time, tokens, what it does. name
// and model are the widths of these columns.
func (s *state) workerRow(w *worker, name, model int) line {
	m := s.method()
	glyph, st := s.glyph(w.run.State)
	mark, label := "  ", plain
	if w.run.ID == s.selected {
		mark, label = "▶ ", bold.and(reverse)
	}
	l := line{{mark, cyan}, {glyph + " ", st}, {pad(m, oneLine(w.run.Name()), name), label}}
	if s.width >= 60 {
		l = append(l, span{"  " + pad(m, shortModel(w.run.Profile.Model), model), dim})
	}
	l = append(l, span{fmt.Sprintf("  %6s", s.elapsed(w.run)), plain})
	if s.width >= 44 {
		l = append(l, span{fmt.Sprintf("  %10s", tokens(w.run.Usage)), dim})
	}
	doing, dst := w.doing()
	return append(l, span{"  " + doing, dst})
}

// doing says what the worker does, or how it ended.
func (w *worker) doing() (string, style) {
	switch r := w.run; {
	case r.State == goclaw.StateCompleted:
		return oneLine(firstLine(strings.TrimSpace(r.Result))), dim
	case r.State.Ended():
		return oneLine(ending(r)), red
	case w.cancelling:
		return "cancelling…", yellow
	case r.State == goclaw.StateQueued:
		return "queued", dim
	case r.State == goclaw.StateInterrupted:
		return "interrupted, will resume", yellow
	}
	return oneLine(w.activity), dim
}

func (s *state) glyph(st goclaw.RunState) (string, style) {
	switch st {
	case goclaw.StateCompleted:
		return "✓", green
	case goclaw.StateFailed, goclaw.StateTimeout, goclaw.StateCancelled:
		return "✗", red
	case goclaw.StateQueued:
		return "○", dim
	case goclaw.StateInterrupted:
		return "‖", yellow
	}
	return s.spin(), cyan
}

// elapsed is how long a run has been going, or took.
func (s *state) elapsed(r goclaw.Run) string {
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
	d := (time.Duration(to-from) * time.Millisecond).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
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

// status is the last line: what happens, with which model, and the next keys.
func (s *state) status() string {
	m := s.method()
	if w := s.worker(s.confirm); w != nil {
		l := line{{" Cancel worker ", bold.and(yellow)}, {oneLine(w.run.Name()), bold}, {"? ", bold.and(yellow)}, {"y/n", bold}}
		return l.fit(m, s.width).String()
	}
	parts := s.statusParts()
	hints, urgent := s.hints()
	room := s.width
	if urgent {
		room -= m.StringWidth(hints[0]) + 3
	}
	left := joinParts(parts)
	for len(parts) > 1 && left.width(m) > room {
		parts = parts[:len(parts)-1]
		left = joinParts(parts)
	}
	for ; len(hints) > 0; hints = hints[:len(hints)-1] {
		hint := strings.Join(hints, " · ")
		if gap := s.width - left.width(m) - m.StringWidth(hint) - 1; gap >= 2 {
			left = append(left, span{text: strings.Repeat(" ", gap)}, span{hint, dim})
			break
		}
	}
	return left.fit(m, s.width).String()
}

// statusParts are in order of importance: a narrow screen drops the last ones.
func (s *state) statusParts() []span {
	var parts []span
	switch {
	case s.link != nil:
		parts = append(parts, span{"offline", red})
	case len(s.turns) > 0:
		t := s.turns[0]
		doing := t.activity
		if doing == "" {
			doing = "working"
		}
		text := s.spin() + " " + doing + " " + s.elapsed(t.run)
		parts = append(parts, span{text, cyan})
	default:
		parts = append(parts, span{"ready", green})
	}
	if n := len(s.pending); n > 0 {
		parts = append(parts, span{strconv.Itoa(n) + " queued", yellow})
	}
	if s.demo {
		badge := "offline demonstration model"
		if s.width < 60 {
			badge = "demo model"
		}
		parts = append(parts, span{badge, reverse})
	}
	if name := shortModel(s.model); name != "" {
		parts = append(parts, span{name, plain})
	}
	parts = append(parts, span{shortKey(s.session), dim})
	if len(s.turns) > 0 {
		if used := tokens(s.turns[0].run.Usage); used != "" {
			parts = append(parts, span{used, dim})
		}
	}
	return parts
}

func joinParts(parts []span) line {
	l := line{{text: " "}}
	for i, p := range parts {
		if i > 0 {
			l = append(l, span{" · ", dim})
		}
		l = append(l, p)
	}
	return l
}

// hints name the keys that make sense now, most useful first; an urgent one
// is worth more than the state of things.
func (s *state) hints() (keys []string, urgent bool) {
	switch {
	case s.now.Before(s.armed):
		return []string{"Ctrl+C again leaves"}, true
	case s.selected != "":
		return []string{"x cancels it", "Esc lets go"}, true
	case len(s.turns) > 0:
		return []string{"Ctrl+C stops", "Ctrl+O unfolds"}, false
	case len(s.shownWorkers()) > 0:
		return []string{"Tab selects a worker", "Ctrl+O unfolds"}, false
	}
	return []string{"/help", "Ctrl+O unfolds"}, false
}

// shortKey names a session in few characters.
func shortKey(k goclaw.SessionKey) string {
	short := k.Agent
	switch k.Kind {
	case goclaw.KindAPI:
		short += "/" + k.Peer
	case goclaw.KindSubagent, goclaw.KindCron:
		short += "/" + string(k.Kind) + "/" + k.ID[:min(8, len(k.ID))]
	case goclaw.KindChannel:
		short += "/" + k.Channel + "/" + k.Peer
	}
	return oneLine(short)
}
