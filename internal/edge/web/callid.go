package web

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// The ids that clients get lead back to the run without anything being stored
// for them. They keep to letters, digits, _ and -, and to maxID characters,
// which is what OpenAI allows and other servers and clients rely on:
//
//	call_RUN_REPLY_ID    a call of the caller's tool, in the run's REPLY-th model reply
//	fc_RUN_REPLY_ID      the same as an output item
//	resp_RUN_AFTER       what the run said and called after its AFTER-th model reply
//	msg_RUN_AFTER        its text
const maxID = 64

// single marks a response that tells of one call at most.
const single = "s"

// command begins what sets the answer of a slash command, which is no run,
// apart from the response that it followed.
const command = "c"

// runToken writes a run's id in 26 characters.
func runToken(run string) string {
	id, err := uuid.Parse(run)
	if err != nil || id.String() != run {
		return run
	}
	return lower32(id[:])
}

// runOf reads what runToken wrote.
func runOf(token string) string {
	raw, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(token))
	id, wrong := uuid.FromBytes(raw)
	if err != nil || wrong != nil {
		return token
	}
	return id.String()
}

func lower32(raw []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))
}

// callID is what the client knows a call by. The provider's own id stands in it
// if it fits, else its hash: it is only ever compared.
func callID(run string, reply int, id string) string {
	head := "call_" + runToken(run) + "_" + strconv.Itoa(reply) + "_"
	room := max(maxID-len(head), 16)
	if id == "" || len(id) > room || strings.ContainsFunc(id, strange) {
		sum := sha256.Sum256([]byte(id))
		id = lower32(sum[:])[:min(room, 26)]
	}
	return head + id
}

func strange(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	return !plain
}

// place is a point in a run: after so many replies of its model.
type place struct {
	run   string
	reply int
}

// parseCallID tells which reply of which run made a call. It reads the item's
// id as well.
func parseCallID(id string) (place, bool) {
	rest, ok := strings.CutPrefix(id, "call_")
	if !ok {
		rest, ok = strings.CutPrefix(id, "fc_")
	}
	parts := strings.SplitN(rest, "_", 3)
	if !ok || len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return place{}, false
	}
	reply, err := strconv.Atoi(parts[1])
	return place{runOf(parts[0]), reply}, err == nil && reply > 0
}

// fcID is the item id of a call.
func fcID(call string) string { return "fc_" + strings.TrimPrefix(call, "call_") }

func responseID(p place, one bool) string {
	id := "resp_" + runToken(p.run) + "_" + strconv.Itoa(p.reply)
	if one {
		id += single
	}
	return id
}

// commandID leads on to the response that a slash command followed, if it did.
func commandID(previous string) string {
	own := uuid.NewString()
	if p, _, ok := parsePlace("resp_", previous); ok {
		return responseID(p, false) + command + own[:8]
	}
	return "resp_" + own
}

func messageID(p place) string { return "msg_" + runToken(p.run) + "_" + strconv.Itoa(p.reply) }

// parsePlace reads responseID, commandID and messageID; prefix is resp_ or msg_.
func parsePlace(prefix, id string) (p place, one, ok bool) {
	rest, ok := strings.CutPrefix(id, prefix)
	token, count, found := strings.Cut(rest, "_")
	count, _, _ = strings.Cut(count, command)
	count, one = strings.CutSuffix(count, single)
	reply, err := strconv.Atoi(count)
	return place{runOf(token), reply}, one, ok && found && token != "" && err == nil && reply >= 0
}
