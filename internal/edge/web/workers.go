package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// spawnBody asks for a worker.
type spawnBody struct {
	Session goclaw.SessionKey `json:"session,omitempty" jsonschema:"who asks, and is told the result; default: the default agent's main session"`
	goclaw.SpawnRequest
}

type flowBody struct {
	Session goclaw.SessionKey `json:"session,omitempty" jsonschema:"who asks, and is told the result; default: the default agent's main session"`
	File    string            `json:"file,omitempty" jsonschema:"its name, for messages"`
	Flow    string            `json:"flow" limit:"1.." jsonschema:"the text of the flow, YAML"`
	Input   json.RawMessage   `json:"input,omitempty" jsonschema:"what the flow's input asks for"`
}

type steerBody struct {
	Message string `json:"message" limit:"1.." jsonschema:"what the worker reads before its next step"`
}

func (s *server) workerRoutes() []route {
	id := []openapi.Param{named("id", "a run")}
	accepted := []openapi.Answer{{Status: http.StatusAccepted, About: "the run's ids", Body: goclaw.SpawnReply{}}}
	key := []openapi.Param{idempotencyKey("")}
	return []route{
		{pattern: "POST /api/runs", handle: s.spawnRun, op: openapi.Operation{
			ID: "spawnRun", Tag: "workers", Summary: "Start a worker",
			About:   "A definition runs if agent names one. On behalf of a session, announce is each or none. A refusal by policy (depth, children, allowAgents) is a 403.",
			Headers: key, Body: spawnBody{}, Answers: accepted, Errors: []int{http.StatusUnprocessableEntity},
		}},
		{pattern: "POST /api/flows", handle: s.runFlow, op: openapi.Operation{
			ID: "runFlow", Tag: "workers", Summary: "Start a flow", Headers: key, Body: flowBody{},
			Answers: accepted, Errors: []int{http.StatusUnprocessableEntity},
		}},
		{pattern: "POST /api/runs/{id}/steer", handle: s.steerRun, op: openapi.Operation{
			ID: "steerRun", Tag: "workers", Summary: "Send a message to a worker under way", Path: id, Headers: key, Body: steerBody{},
			Answers: ok("the run", goclaw.Run{}), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
		}},
		{pattern: "POST /api/runs/{id}/resume", handle: s.resumeRun, op: openapi.Operation{
			ID: "resumeRun", Tag: "workers", Summary: "Let a run go on that waits for a person", Path: id, Body: struct{}{}, Optional: true,
			Answers: ok("the run", goclaw.Run{}), Errors: []int{http.StatusNotFound, http.StatusConflict},
		}},
	}
}

// idempotencyKey is the header by which a request that is sent again is known.
func idempotencyKey(field string) openapi.Param {
	p := openapi.Param{Name: "Idempotency-Key", Length: 255, Pattern: "^[ -~]+$",
		About: "names this request: sent again with the same key it takes effect once, and is answered like the first; another request with that key is a 422"}
	if field != "" {
		p.About += "; the field " + field + " does the same, and wins"
	}
	return p
}

// spawnRun starts a worker: 202 with its ids. A refusal by policy is a 403.
func (s *server) spawnRun(w http.ResponseWriter, r *http.Request) {
	var body spawnBody
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Task == "" {
		s.fail(w, r, wrong("task", `field "task" is required: what the worker shall do`))
		return
	}
	if body.Session.IsZero() {
		body.Session = goclaw.MainKey(s.Agents[0])
	}
	if once(r) != "" {
		body.Digest = digest(body)
	}
	reply, err := s.Backend.Spawn(r.Context(), body.Session, body.SpawnRequest, once(r))
	s.accepted(w, r, reply, err)
}

// runFlow starts a flow: 202 with the ids of its run.
func (s *server) runFlow(w http.ResponseWriter, r *http.Request) {
	var body flowBody
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Session.IsZero() {
		body.Session = goclaw.MainKey(s.Agents[0])
	}
	reply, err := s.Backend.RunFlow(r.Context(), body.Session, cmp.Or(body.File, "flow.yaml"), body.Flow, body.Input, once(r))
	s.accepted(w, r, reply, err)
}

// accepted answers a request that starts a run.
func (s *server) accepted(w http.ResponseWriter, r *http.Request, reply goclaw.SpawnReply, err error) {
	switch {
	case err != nil:
		s.fail(w, r, err)
	case reply.Status == "forbidden":
		s.fail(w, r, failure{Status: http.StatusForbidden, Detail: reply.Error})
	case reply.Error != "":
		s.fail(w, r, invalid("", "%s", reply.Error))
	default:
		writeJSON(w, http.StatusAccepted, reply)
	}
}

// digest tells requests apart that name the same idempotency key.
func digest(body any) string {
	data, err := json.Marshal(body)
	if err != nil {
		return "" // it came from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// once is the key by which a request that is sent again is known.
func once(r *http.Request) string { return r.Header.Get("Idempotency-Key") }

// steerRun hands a message to a worker under way; a 409 says that it has ended.
func (s *server) steerRun(w http.ResponseWriter, r *http.Request) {
	var body steerBody
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Message == "" {
		s.fail(w, r, wrong("message", `field "message" is required`))
		return
	}
	run, err := s.Backend.Steer(r.Context(), given(r).Text("id"), body.Message, once(r))
	s.reply(w, r, run, err)
}

func (s *server) resumeRun(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Backend.Resume(r.Context(), given(r).Text("id"))
	s.reply(w, r, run, err)
}
