package goclaw

import "encoding/json"

// SpawnRequest asks for a subagent run. Empty fields take the defaults of spec
// section 5.
type SpawnRequest struct {
	Task    string `json:"task"`
	Agent   string `json:"agent,omitempty"`   // a definition's name
	AgentID string `json:"agentId,omitempty"` // a configured agent
	Context string `json:"context,omitempty"`

	// Input is what a definition's input schema asks for; OutputSchema asks for
	// an answer in JSON of that schema.
	Input        json.RawMessage `json:"input,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`

	Label          string       `json:"label,omitempty"`
	Model          string       `json:"model,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	TimeoutSeconds *int         `json:"timeoutSeconds,omitempty"` // 0: none
	Cleanup        Cleanup      `json:"cleanup,omitempty"`
	Announce       AnnounceMode `json:"announce,omitempty"`

	// Digest tells requests with the same idempotency key apart; "" compares
	// nothing.
	Digest string `json:"-"`

	// Chained says that the run is a flow's: what its definition names as next
	// is that flow's affair.
	Chained bool `json:"-"`
}

// SpawnReply answers a SpawnRequest: accepted is said only once the run is
// durable. Status is accepted, forbidden or error.
type SpawnReply struct {
	Status     string `json:"status"`
	RunID      string `json:"runId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	Error      string `json:"error,omitempty"`
	Note       string `json:"note,omitempty"` // what the requester should know of an accepted one
}

// Forbidden is a refusal by policy, Failed one for a bad request.
func Forbidden(why string) SpawnReply { return SpawnReply{Status: "forbidden", Error: why} }

// Failed says what was wrong with the request.
func Failed(why string) SpawnReply { return SpawnReply{Status: "error", Error: why} }
