package turn

import (
	"strings"

	"goclaw"
)

// HeartbeatOK is the reply of a heartbeat turn that found nothing to tell.
const HeartbeatOK = "HEARTBEAT_OK"

// smallTalk is how much a reply may hold besides HEARTBEAT_OK and still be
// taken for it, in bytes.
const smallTalk = 300

// Heartbeat is what a heartbeat turn's reply comes to: goclaw.NoReply if it
// begins or ends with HEARTBEAT_OK and says little else; without that mark,
// what it says.
func Heartbeat(reply string) string {
	text := strings.TrimSpace(reply)
	bare := strings.Trim(text, "\"'`*_. \t\r\n")
	rest, marked := strings.CutPrefix(bare, HeartbeatOK)
	if !marked {
		rest, marked = strings.CutSuffix(bare, HeartbeatOK)
	}
	rest = strings.Trim(rest, "\"'`*_.:-– \t\r\n")
	switch {
	case text == "", marked && len(rest) <= smallTalk:
		return goclaw.NoReply
	case marked:
		return rest
	}
	return reply
}
