package web

import (
	"strings"

	"goclaw"
)

// blank separates replies, and the texts of two model calls.
const blank = "\n\n"

// shown knows what text of a conversation a stream has carried, and decides
// what to carry next. Streamed text can't be taken back, notices may be lost,
// and a silent reply must not be seen; the replies of the outcome are what
// counts in the end.
type shown struct {
	wait    bool            // the turns that announce workers count as well
	whole   bool            // only what the turn answers in the end: pieces may yet be refused for their form
	tracked map[string]bool // runs whose text belongs in the stream

	cur     modelCall
	any     bool     // some text was carried
	blind   bool     // notices of this turn were lost: its pieces have gaps
	replies []string // of the turns that have ended
	ended   int      // turns that have ended
	settled bool     // no more notices are waited for
}

// modelCall is the text of one model call.
type modelCall struct {
	run    string
	text   string // as far as it is known
	sent   string // what of it was carried; after a reset text may be shorter
	closed bool   // the call is over: more text is another call's
}

// see takes a notice and returns the text to carry.
func (s *shown) see(n goclaw.Notice) string {
	id := n.RunID
	if id == "" && n.Run != nil {
		id = n.Run.ID
	}
	switch {
	case n.Kind == goclaw.NoticeLag:
		s.blind = true
		return ""
	case s.wait && n.Run != nil && n.Run.Trigger == goclaw.TriggerAnnouncement:
		s.tracked[id] = true
	}
	if !s.tracked[id] {
		return ""
	}
	if n.Kind == goclaw.NoticeRun {
		if n.Run != nil && n.Run.State.Ended() {
			delete(s.tracked, id)
			s.ended++
			return s.turnEnded(n.Run.Result)
		}
		if n.Run != nil && n.Run.WaitsFor == goclaw.WaitCaller {
			s.ended++ // as far as this request is concerned
		}
		return ""
	}
	if s.blind || s.whole {
		return ""
	}
	switch n.Kind {
	case goclaw.NoticeText:
		if s.cur.closed || s.cur.run != id {
			s.cur = modelCall{run: id}
		}
		s.cur.text += n.Text
		return s.advance()
	case goclaw.NoticeReset:
		if !s.cur.closed {
			s.cur.text = ""
		}
	case goclaw.NoticeToolCall, goclaw.NoticeUsage:
		s.cur.closed = true
	}
	return ""
}

// advance returns what the current call's text adds to what was carried of it.
func (s *shown) advance() string {
	c := &s.cur
	switch {
	case strings.HasPrefix(goclaw.NoReply, strings.TrimSpace(c.text)):
		return "" // it may become a silent reply
	case strings.HasPrefix(c.sent, c.text):
		return "" // made again after a reset, and the same so far
	case c.sent != "" && strings.HasPrefix(c.text, c.sent):
		more := c.text[len(c.sent):]
		c.sent = c.text
		return more
	}
	c.sent = c.text
	return s.apart(c.text)
}

// turnEnded completes a turn's reply.
func (s *shown) turnEnded(reply string) string {
	sent := strings.TrimSpace(s.cur.sent)
	s.cur, s.blind = modelCall{}, false
	if silent(reply) {
		return ""
	}
	s.replies = append(s.replies, reply)
	whole := strings.TrimSpace(reply)
	switch {
	case sent == "":
		return s.apart(whole)
	case strings.HasPrefix(whole, sent):
		return whole[len(sent):]
	case strings.HasPrefix(sent, whole):
		return ""
	}
	return s.apart(whole)
}

// rest returns what was not carried yet of the replies of an outcome.
func (s *shown) rest(replies []string) string {
	var b strings.Builder
	done := s.replies
	for _, reply := range replies {
		if len(done) > 0 && done[0] == reply {
			done = done[1:]
			continue
		}
		b.WriteString(s.turnEnded(reply))
	}
	return b.String()
}

// complete reports whether all the turns of an outcome were seen to end.
func (s *shown) complete(out goclaw.Outcome) bool {
	return s.settled || s.ended >= max(out.Turns, 1)
}

// apart sets text off from what was carried before.
func (s *shown) apart(text string) string {
	if s.any {
		return blank + text
	}
	s.any = s.any || text != ""
	return text
}

// silent reports whether a reply is for nobody.
func silent(reply string) bool {
	reply = strings.TrimSpace(reply)
	return reply == "" || reply == goclaw.NoReply
}
