package goclaw

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SessionKind is the kind of conversation that a SessionKey addresses.
type SessionKind string

// The kinds of session (spec section 2).
const (
	KindMain     SessionKind = "main"
	KindChannel  SessionKind = "channel"
	KindAPI      SessionKind = "api"
	KindSubagent SessionKind = "subagent"
	KindCron     SessionKind = "cron"
)

// SessionKey is the parsed address of a session. It is comparable; the zero
// value addresses nothing. Nothing outside this file looks inside its text.
type SessionKey struct {
	Agent    string
	Kind     SessionKind
	Channel  string // KindChannel: the channel's name
	PeerKind string // KindChannel: direct or group
	Peer     string // KindChannel and KindAPI: who is at the other end, unescaped
	Thread   string // KindChannel: thread id, if any, unescaped
	ID       string // KindSubagent: run uuid; KindCron: job id
}

// DefaultAgent is the agent that is there without being configured.
const DefaultAgent = "main"

// MainKey addresses an agent's main session.
func MainKey(agent string) SessionKey { return SessionKey{Agent: agent, Kind: KindMain} }

// SubagentKey addresses the session of one spawned worker.
func SubagentKey(agent, id string) SessionKey {
	return SessionKey{Agent: agent, Kind: KindSubagent, ID: id}
}

// APIKey addresses the session of one user of the HTTP API.
func APIKey(agent, user string) SessionKey {
	return SessionKey{Agent: agent, Kind: KindAPI, Peer: user}
}

// CronKey addresses the session of one cron job.
func CronKey(agent, job string) SessionKey {
	return SessionKey{Agent: agent, Kind: KindCron, ID: job}
}

// IsZero reports whether k addresses nothing.
func (k SessionKey) IsZero() bool { return k == SessionKey{} }

// IsWorker reports whether sessions of this kind get the minimal prompt and
// never see private context.
func (k SessionKey) IsWorker() bool { return k.Kind == KindSubagent || k.Kind == KindCron }

// String returns the canonical text of k, or "" for the zero key.
func (k SessionKey) String() string {
	if k.IsZero() {
		return ""
	}
	parts := []string{"agent", k.Agent}
	switch k.Kind {
	case KindMain:
		parts = append(parts, "main")
	case KindSubagent:
		parts = append(parts, "subagent", k.ID)
	case KindCron:
		parts = append(parts, "cron", k.ID)
	case KindAPI:
		parts = append(parts, "api", "user", k.Peer)
	default:
		parts = append(parts, k.Channel, k.PeerKind, k.Peer)
		if k.Thread != "" {
			parts = append(parts, "thread", k.Thread)
		}
	}
	for i, p := range parts {
		parts[i] = escapeKeyPart(p)
	}
	return strings.Join(parts, ":")
}

// MarshalText writes the canonical form, so that keys are strings in JSON.
func (k SessionKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote; empty text gives the zero key.
func (k *SessionKey) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*k = SessionKey{}
		return nil
	}
	parsed, err := ParseSessionKey(string(b))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// ParseSessionKey reads a session key in the forms of spec section 2 and in
// the two older ones (agent:<id>:spawn:<id>, cron:<jobId>). For every key it
// accepts, parsing the result's String gives the same key again.
func ParseSessionKey(s string) (SessionKey, error) {
	k, err := parseSessionKey(s)
	if err != nil {
		return SessionKey{}, err
	}
	// An older form grows when it is written canonically.
	if n := len(k.String()); n > maxKeyLen {
		return SessionKey{}, fmt.Errorf("session key of %d bytes: at most %d are allowed", n, maxKeyLen)
	}
	return k, nil
}

func parseSessionKey(s string) (SessionKey, error) {
	bad := func(why string) (SessionKey, error) {
		return SessionKey{}, fmt.Errorf("session key %q: %s", s, why)
	}
	if len(s) > maxKeyLen {
		return SessionKey{}, fmt.Errorf("session key of %d bytes: at most %d are allowed", len(s), maxKeyLen)
	}
	raw := strings.Split(s, ":")
	parts := make([]string, len(raw))
	for i, r := range raw {
		p, err := unescapeKeyPart(r)
		if err != nil {
			return bad(err.Error())
		}
		if p == "" {
			return bad(fmt.Sprintf("part %d is empty", i+1))
		}
		parts[i] = p
	}
	if raw[0] == "cron" && len(parts) == 2 {
		return CronKey("main", parts[1]), nil
	}
	if raw[0] != "agent" {
		return bad(`it must start with "agent:"`)
	}
	if len(parts) < 3 {
		return bad("want agent:<agentId>:main, agent:<agentId>:<channel>:<kind>:<peer>, agent:<agentId>:subagent:<id> or agent:<agentId>:cron:<jobId>")
	}
	agent, rest := parts[1], parts[2:]
	if err := CheckAgentID(agent); err != nil {
		return bad(err.Error())
	}
	switch kind := raw[2]; {
	case kind == "main":
		if len(rest) == 1 {
			return MainKey(agent), nil
		}
		return bad("nothing may follow main")
	case kind == "subagent" || kind == "spawn":
		if len(rest) == 2 {
			return SubagentKey(agent, rest[1]), nil
		}
		return bad("one id must follow " + kind)
	case kind == "cron":
		if len(rest) == 2 {
			return CronKey(agent, rest[1]), nil
		}
		return bad("one job id must follow cron")
	case kind == "api":
		if len(rest) == 3 && raw[3] == "user" {
			return APIKey(agent, rest[2]), nil
		}
		return bad("api is followed by user:<id>")
	}
	return parseChannelKey(agent, raw, rest, bad)
}

// parseChannelKey reads what follows agent:<agentId> when it is no kind of its
// own: rest is unescaped, raw is the whole key as written.
func parseChannelKey(agent string, raw, rest []string, bad func(string) (SessionKey, error)) (SessionKey, error) {
	if err := CheckAgentID(rest[0]); err != nil {
		return bad("channel: " + err.Error())
	}
	switch rest[0] {
	case "main", "subagent", "spawn", "cron", "api":
		// Written with escapes; as a channel's name it would be read as that
		// kind the next time.
		return bad(fmt.Sprintf("%q can't be a channel's name", rest[0]))
	}
	threaded := len(rest) == 5 && raw[5] == "thread"
	if len(rest) != 3 && !threaded {
		return bad("a channel key is agent:<agentId>:<channel>:<kind>:<peer>[:thread:<id>]")
	}
	if rest[1] != "direct" && rest[1] != "group" {
		return bad(fmt.Sprintf("peer kind %q: want direct or group", rest[1]))
	}
	k := SessionKey{Agent: agent, Kind: KindChannel, Channel: rest[0], PeerKind: rest[1], Peer: rest[2]}
	if threaded {
		k.Thread = rest[4]
	}
	return k, nil
}

const maxKeyLen = 1024

// CheckAgentID says why s can't be an agent id or a channel name: both are
// lower-case letters, digits, '-' and '_', at most 64, starting with a letter
// or a digit.
func CheckAgentID(s string) error {
	if s == "" || len(s) > 64 {
		return fmt.Errorf("name %q must have 1 to 64 characters", s)
	}
	for i, r := range s {
		ok := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || i > 0 && (r == '-' || r == '_')
		if !ok {
			return fmt.Errorf("name %q: %q is not allowed (use a-z, 0-9, - and _, starting with a letter or digit)", s, r)
		}
	}
	return nil
}

// escapeKeyPart makes a part safe to stand between colons and in JSON, which
// can't carry bytes that are no UTF-8.
func escapeKeyPart(p string) string {
	if utf8.ValidString(p) && !strings.ContainsFunc(p, needsEscape) {
		return p
	}
	var b strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		if needsEscape(r) || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", p[0])
		} else {
			b.WriteString(p[:n])
		}
		p = p[n:]
	}
	return b.String()
}

func needsEscape(r rune) bool { return r == ':' || r == '%' || r <= ' ' || r == 0x7f }

func unescapeKeyPart(p string) (string, error) {
	if !utf8.ValidString(p) {
		return "", fmt.Errorf("%q is not UTF-8 (write such a byte as %%XX)", p)
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c != '%' {
			if needsEscape(rune(c)) {
				return "", fmt.Errorf("the character %q must be written %%%02X", c, c)
			}
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(p) {
			return "", fmt.Errorf("%q ends in an unfinished escape", p)
		}
		hi, lo := unhex(p[i+1]), unhex(p[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("%q is no escape (want %%XX)", p[i:i+3])
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// Session is the stored head of a conversation; its transcript is the fold of
// its runs' events.
type Session struct {
	Key       SessionKey `json:"key"`
	Agent     string     `json:"agent"`
	CreatedAt Millis     `json:"createdAt"`
	UpdatedAt Millis     `json:"updatedAt"`

	// Model and Thinking override the agent's for this session; "" means none.
	Model    string `json:"model,omitempty"`
	Thinking string `json:"thinking,omitempty"`

	// ResetAt is the ordinal of the last run before a /new: runs up to it are
	// kept but are no longer part of the transcript that the model sees.
	ResetAt int64 `json:"resetAt,omitempty"`

	// ArchivedAt is set when the session was archived, DeletedAt when its
	// transcript was removed (cleanup: delete). Zero means neither.
	ArchivedAt Millis `json:"archivedAt,omitempty"`
	DeletedAt  Millis `json:"deletedAt,omitempty"`

	// Turns is how many runs the session has had.
	Turns int `json:"turns"`
}
