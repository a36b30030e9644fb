package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw/internal/edge/web/openapi"
)

// v1Routes are the part of the surface that OpenAI's clients speak to.
func (s *server) v1Routes() []route {
	headers := []openapi.Param{
		sessionKey("X-GoClaw-Session", "whose conversation it is; default: that of the field user or of the response before, else a new one"),
		{Name: "X-GoClaw-Wait", Type: openapi.Flag, About: "hold the answer until the workers that it started are announced"},
		idempotencyKey(""),
	}
	answered := []openapi.Param{{Name: "X-GoClaw-Session", About: "the session"}, {Name: "X-GoClaw-Run", About: "the run"}}
	stream := func(about string, events ...openapi.Event) openapi.Answer {
		return openapi.Answer{Status: http.StatusOK, About: about, Media: "text/event-stream", Events: events}
	}
	id := []openapi.Param{{Name: "id", About: "the id of a response"}}
	ended := []int{http.StatusNotFound, http.StatusConflict, http.StatusGatewayTimeout}
	return []route{
		{pattern: "POST /v1/chat/completions", handle: s.chatCompletions, op: openapi.Operation{
			ID: "createChatCompletion", Tag: "openai", Summary: "OpenAI's chat completions, by an agent",
			Headers: headers, Body: chatRequest{}, Errors: ended,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "the completion; with stream its chunks, and [DONE]", Body: chatAnswer{}, Headers: answered},
				stream("", openapi.Event{About: "a chunk, or an error", Body: chatAnswer{}}),
			},
		}},
		{pattern: "POST /v1/responses", handle: s.createResponse, op: openapi.Operation{
			ID: "createResponse", Tag: "openai", Summary: "OpenAI's responses, by an agent",
			Headers: headers, Body: responseRequest{}, Errors: ended,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "the response; with stream its events", Body: response{}, Headers: answered},
				stream("", openapi.Event{Name: "response.*", About: "what its type says", Body: happening{}},
					openapi.Event{Name: "error", About: "the stream can't be completed", Body: streamError{}}),
			},
		}},
		{pattern: "GET /v1/responses/{id}", handle: s.getResponse, op: openapi.Operation{
			ID: "getResponse", Tag: "openai", Summary: "A response that was created", Path: id,
			Query: []openapi.Param{
				{Name: "stream", Type: openapi.Flag, About: "only false: a response can't be streamed again"},
				{Name: "include", Repeated: true, About: "without effect"},
				{Name: "include[]", Repeated: true, About: "without effect"},
				{Name: "include_obfuscation", Type: openapi.Flag, About: "without effect"},
			},
			Answers: ok("the response", response{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "POST /v1/responses/{id}/cancel", handle: s.cancelResponse, op: openapi.Operation{
			ID: "cancelResponse", Tag: "openai", Summary: "End a response that is under way, and the workers that it started", Path: id,
			Answers: ok("the response", response{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /v1/models", handle: s.models, op: openapi.Operation{
			ID: "listModels", Tag: "openai", Summary: "The agents, as models", Answers: ok("the models", agentModels{}),
		}},
		{pattern: "GET /v1/models/{model...}", handle: s.model, op: openapi.Operation{
			ID: "getModel", Tag: "openai", Summary: "One agent, as a model", Path: []openapi.Param{{Name: "model", About: "goclaw or goclaw/AGENT"}},
			Answers: ok("the model", agentModel{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

// agentModels is the list of them.
type agentModels struct {
	Object string       `json:"object"`
	Data   []agentModel `json:"data"`
}

// agentModel is one entry of /v1/models: an agent.
type agentModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (s *server) modelNamed(id string) agentModel {
	return agentModel{ID: id, Object: "model", Created: s.started.Unix(), OwnedBy: "goclaw"}
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	data := []agentModel{s.modelNamed("goclaw")}
	for _, agent := range s.Agents {
		data = append(data, s.modelNamed("goclaw/"+agent))
	}
	writeJSON(w, http.StatusOK, agentModels{Object: "list", Data: data})
}

func (s *server) model(w http.ResponseWriter, r *http.Request) {
	id := given(r).Text("model")
	_, _, err := s.agentOf(id)
	s.reply(w, r, s.modelNamed(id), err)
}

// modelName names an agent: goclaw is the default one.
type modelName string

// JSONSchema is what the document says of it.
func (modelName) JSONSchema() *jsonschema.Schema {
	var standard any = "goclaw"
	return &jsonschema.Schema{Type: "string", Description: "an agent, as /v1/models lists them",
		AnyOf: []*jsonschema.Schema{{Const: &standard}, {Pattern: "^goclaw/[a-z0-9][a-z0-9_-]*$"}}}
}

// agentOf finds the agent that a model's name means; named says that the name
// chose it, rather than the default.
func (s *server) agentOf(model string) (agent string, named bool, err error) {
	if model == "goclaw" {
		return s.Agents[0], false, nil
	}
	if agent, ok := strings.CutPrefix(model, "goclaw/"); ok && slices.Contains(s.Agents, agent) {
		return agent, true, nil
	}
	return "", false, failure{Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Detail: fmt.Sprintf("the model %q does not exist: use goclaw or goclaw/<agent>, as /v1/models lists them", model)}
}
