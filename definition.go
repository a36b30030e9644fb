package goclaw

import "fmt"

// DefinitionStatus says whether a definition can be used.
type DefinitionStatus string

// The statuses, best first (spec section 4). A degraded definition is listed,
// and a spawn is refused with the reason; a rejected one only keeps its name
// from being used for something else.
const (
	DefinitionOK       DefinitionStatus = "ok"
	DefinitionWarning  DefinitionStatus = "warning"
	DefinitionDegraded DefinitionStatus = "degraded"
	DefinitionRejected DefinitionStatus = "rejected"
)

// ProblemLevel is how much a problem weighs.
type ProblemLevel string

// The levels. A notice leaves the status as it is.
const (
	LevelNotice  ProblemLevel = "notice"
	LevelWarning ProblemLevel = "warning"
	LevelDegrade ProblemLevel = "degraded"
	LevelError   ProblemLevel = "error"
)

// DefinitionProblem is something to know about a definition's file, and where
// it stands in it.
type DefinitionProblem struct {
	Line    int          `json:"line"`
	Col     int          `json:"col"`
	Level   ProblemLevel `json:"level"`
	Message string       `json:"message"`
	Hint    string       `json:"hint"`
}

// Render is the problem as one line: path:line:col: what; what to do.
func (p DefinitionProblem) Render(path string) string {
	s := fmt.Sprintf("%s:%d:%d: %s", path, p.Line, p.Col, p.Message)
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// RuleAction is what a rule says about a call.
type RuleAction string

// The actions. Where nobody can be asked, ask means deny.
const (
	RuleAllow RuleAction = "allow"
	RuleAsk   RuleAction = "ask"
	RuleDeny  RuleAction = "deny"
)

// DefinitionRule decides about calls of one tool by what they are about: the
// command of exec, the path of a file tool, the definition of sessions_spawn.
type DefinitionRule struct {
	Tool    string     `json:"tool"`
	Pattern string     `json:"pattern"` // "*" for any; `git:*` for a command and its arguments
	Action  RuleAction `json:"action"`
}

// DefinitionReport is what people and scripts see of a definition: the CLI and
// the HTTP API show the same (spec section 12).
type DefinitionReport struct {
	Kind        string              `json:"kind"` // definition
	Path        string              `json:"path"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Scope       string              `json:"scope,omitempty"`
	Trusted     bool                `json:"trusted"`
	Overrides   string              `json:"overrides,omitempty"`
	Active      bool                `json:"active"` // false: another file has the name
	Status      DefinitionStatus    `json:"status"`
	Tools       []string            `json:"tools"`       // that it comes down to
	ToolsListed bool                `json:"toolsListed"` // false: the worker set
	Denied      []string            `json:"denied"`
	Rules       []DefinitionRule    `json:"rules"`
	Model       string              `json:"model,omitempty"`
	Visibility  string              `json:"visibility,omitempty"`
	TimeoutSecs *int                `json:"timeoutSeconds,omitempty"`
	SHA256      string              `json:"sha256,omitempty"`
	Problems    []DefinitionProblem `json:"problems"`
	Body        string              `json:"body,omitempty"` // where one definition is asked for
}
