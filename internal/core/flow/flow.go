package flow

import (
	"cmp"
	"encoding/json"
	"fmt"

	"goclaw"
)

// The bounds of a flow.
const (
	MaxSteps  = 200
	MaxRounds = 100  // of one loop
	MaxItems  = 1000 // of one wave
)

const (
	defaultRounds = 3
	defaultItems  = 100
)

// Flow is a file of steps. It can be stored as JSON and planned again.
type Flow struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // a JSON Schema of an object; nil: any object
	Limits      Limits          `json:"limits,omitzero"`
	Steps       []Step          `json:"steps"`
	Result      string          `json:"result,omitempty"` // the step whose result is the flow's; "": the last
}

// MostRounds is how often each loop runs, at most.
func (f Flow) MostRounds() int { return cmp.Or(f.Limits.Rounds, defaultRounds) }

// MostItems is how many runs a wave has, at most.
func (f Flow) MostItems() int { return cmp.Or(f.Limits.Items, defaultItems) }

// Limits bound a flow; a zero field is the default.
type Limits struct {
	Rounds int `json:"rounds,omitempty"` // of each loop, the first included; 3
	Items  int `json:"items,omitempty"`  // of each wave; 100
}

// Step is one run of a flow, or one for each item of a list.
type Step struct {
	ID      string `json:"id"`
	Agent   string `json:"agent,omitempty"`   // a definition's name
	AgentID string `json:"agentId,omitempty"` // a configured agent
	Task    string `json:"task"`

	// Each is the path of the list of which every item gets a run, as in
	// plan.files; "" for one run.
	Each string `json:"each,omitempty"`

	// After are the steps that must have ended well before.
	After []string `json:"after,omitempty"`

	Takes []Take   `json:"takes,omitempty"`
	Gives []string `json:"gives,omitempty"` // artifacts, or patterns of them, that each of its runs must leave

	Input  json.RawMessage `json:"input,omitempty"`  // for a typed worker; its texts may hold placeholders
	Output json.RawMessage `json:"output,omitempty"` // the JSON Schema of its result

	// Until are the fields of its JSON result that must have these values.
	// While they don't, everything from Back to this step runs again.
	Until []Condition `json:"until,omitempty"`
	Back  string      `json:"back,omitempty"`

	// Optional lets the flow go on when the step has failed.
	Optional bool `json:"optional,omitempty"`

	Line int `json:"line,omitempty"` // where it stands in its file
	Col  int `json:"col,omitempty"`
}

// Take names artifacts of another step by what that step gives.
type Take struct {
	Step string `json:"step"`
	Name string `json:"name"`
}

func (t Take) String() string { return t.Step + "/" + t.Name }

// Condition holds if the field has the value.
type Condition struct {
	Field string          `json:"field"`
	Is    json.RawMessage `json:"is"` // a text, number, boolean or null
}

// Problem is something wrong in a flow's file, for a person.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String writes a problem as `path:line:col: what; what to do`.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Col, p.Message)
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// StepRun is what is on record of one run of a flow.
type StepRun struct {
	Key       string          `json:"key"` // as Start had it
	RunID     string          `json:"runId"`
	State     goclaw.RunState `json:"status"`
	Error     string          `json:"error,omitempty"`
	Result    string          `json:"result,omitempty"`
	JSON      json.RawMessage `json:"json,omitempty"`      // of a typed result
	Artifacts []string        `json:"artifacts,omitempty"` // names
}

// Next is what is to be done now.
type Next struct {
	Start   []Start  `json:"start,omitempty"`
	Waiting []string `json:"waiting,omitempty"` // keys of the runs that were started and have not ended
	Cancel  []string `json:"cancel,omitempty"`  // keys of those that are to be cancelled, because the flow has failed

	// Ended says that no run is under way and none will be started. State is
	// completed or failed then.
	Ended bool            `json:"ended"`
	State goclaw.RunState `json:"status,omitempty"`
	Error string          `json:"error,omitempty"` // why the flow fails; set before it has Ended, too
	// Result and JSON are those of the result step: of a wave its results one
	// below the other, and a list.
	Result string          `json:"result,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`
}

// Start is a run to be started. Its key is unique in the flow: `plan`,
// `code[0]` for the first item of a wave, `plan@2` in the second round of a
// loop, `plan@2.1` in the first round of a loop in it.
type Start struct {
	Key     string `json:"key"`
	Step    string `json:"step"`
	Label   string `json:"label"` // for people
	Agent   string `json:"agent,omitempty"`
	AgentID string `json:"agentId,omitempty"`
	Task    string `json:"task"`

	Input        json.RawMessage `json:"input,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`

	Takes []Handle `json:"takes,omitempty"`
	Gives []string `json:"gives,omitempty"`
}

// Handle is an artifact of an earlier run.
type Handle struct {
	Key   string `json:"key"` // of the run in the flow
	RunID string `json:"runId"`
	Name  string `json:"name"`
}
