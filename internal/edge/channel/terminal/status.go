package terminal

import (
	"cmp"
	"strconv"
	"strings"

	"goclaw"
)

// status is the last line: what happens, with which model, and the next keys.
func (s *state) status() string {
	m := s.method()
	if q := s.question(); q != nil {
		return q.fit(m, s.width).String()
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
	if s.paused.At != 0 {
		parts = append(parts, span{s.pause(), bold.and(yellow)})
	}
	switch {
	case s.link != nil:
		parts = append(parts, span{"offline", red})
	case len(s.turns) > 0:
		t := s.turns[0]
		doing := cmp.Or(idle(t.run), t.activity, "working")
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

// pause tells since when no model is called, and why.
func (s *state) pause() string {
	at, format := s.paused.At.Time().In(s.now.Location()), "15:04"
	if at.YearDay() != s.now.YearDay() || at.Year() != s.now.Year() {
		format = "2 Jan 15:04"
	}
	text := "PAUSED since " + at.Format(format)
	if why := oneLine(s.paused.Why); why != "" {
		text += ": " + strings.TrimRight(pad(s.method(), why, s.width/3), " ")
	}
	return text + "; /resume goes on"
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
		keys = []string{"x cancels it", "s steers it", "Esc lets go"}
		if w := s.worker(s.selected); w != nil && asks(w.run) {
			keys = append([]string{"r resumes it"}, keys...)
		}
		return keys, true
	case len(s.turns) > 0:
		return []string{"Esc stops", "Ctrl+O unfolds"}, false
	case len(s.places()) > 0:
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
