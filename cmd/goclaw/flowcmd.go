package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/flow"
	"goclaw/internal/core/frontmatter"
	"goclaw/internal/edge/config"
)

// flowReport is what `goclaw flow check --json` prints.
type flowReport struct {
	Path     string         `json:"path"`
	Name     string         `json:"name,omitempty"`
	Problems []flow.Problem `json:"problems"` // the flow can't be used
	Warnings []flow.Problem `json:"warnings"` // a step would be refused here
	Waves    [][]string     `json:"waves"`    // ids of steps that run at the same time, in order
}

func (c *cli) flowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "flow", Short: "Run flows: files that chain runs of workers",
		Long: "A flow is a small YAML file of steps, each a run of a worker that sees only the\n" +
			"artifacts and results that the file hands it.",
	}
	group(cmd)
	var agent string
	check := &cobra.Command{
		Use: "check FILE", Short: "Check a flow and show its waves", Args: one("FILE", "write one as docs/flows.md says"),
		Long: "Reads the file and shows which steps run at the same time, in order. Each problem is a\n" +
			"line PATH:LINE:COL: what; what to do, and fails the check. That the workspace lacks a\n" +
			"definition which a step names is a warning.",
		RunE: func(_ *cobra.Command, args []string) error { return c.checkFlow(agent, args[0]) },
	}
	check.Flags().StringVar(&agent, "agent", config.DefaultAgent, "ID of the agent whose definitions the steps name")
	cmd.AddCommand(check, c.runFlow())
	return cmd
}

func (c *cli) runFlow() *cobra.Command {
	var agent, session, input string
	var detach bool
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Run a flow and print its result", Args: one("FILE", "write one as docs/flows.md says"),
		Long: "Runs a flow on behalf of a session and prints its result. The flow is a run itself: after a\n" +
			"crash the next start goes on with it, and goclaw subagent list, show and cancel know it. With\n" +
			"--detach it stays only until the flow is accepted. Ctrl-C cancels the flow.",
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := sessionOf(cmd, agent, session)
			if err != nil {
				return err
			}
			in, err := c.jsonFlag("--input", input)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return usagef("flow %s can't be read: %w", args[0], reason(err))
			}
			if len(text) == 0 {
				return usagef("flow %s is empty; write one as docs/flows.md says", args[0])
			}
			return c.startRun(cmd.Context(), key, !detach, func(l link) (goclaw.SpawnReply, error) {
				return l.RunFlow(cmd.Context(), key, args[0], string(text), in, uuid.NewString())
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", config.DefaultAgent, "ID of the agent on whose behalf it runs")
	cmd.Flags().StringVar(&session, "session", "", "KEY of the session (default: the agent's main session)")
	cmd.Flags().StringVar(&input, "input", "", "JSON that the flow asks for, @FILE, or - for standard input")
	cmd.Flags().BoolVar(&detach, "detach", false, "don't wait for its end")
	return cmd
}

// readFlow reads a flow's file. A problem in it is no error.
func readFlow(path string) (flow.Flow, []flow.Problem, error) {
	file, err := os.Open(path)
	if err != nil {
		return flow.Flow{}, nil, usagef("flow %s can't be read: %w", path, reason(err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, frontmatter.MaxFile+1))
	if err != nil {
		return flow.Flow{}, nil, usagef("flow %s can't be read: %w", path, reason(err))
	}
	f, problems := flow.Parse(path, data)
	return f, problems, nil
}

func (c *cli) checkFlow(agent, path string) error {
	f, problems, err := readFlow(path)
	if err != nil {
		return err
	}
	_, cfg, catalog, err := c.scan(agent)
	if err != nil {
		return err
	}
	r := flowReport{Path: path, Name: f.Name, Problems: problems, Warnings: []flow.Problem{}, Waves: f.Waves()}
	if problems == nil {
		r.Problems = []flow.Problem{}
	} else {
		r.Waves = [][]string{}
	}
	for _, s := range f.Steps {
		if why, hint := unusable(s, cfg, catalog); why != "" {
			r.Warnings = append(r.Warnings, flow.Problem{Path: path, Line: s.Line, Col: s.Col, Message: "step " + s.ID + why, Hint: hint})
		}
	}
	if err := c.print(r, func() string { return flowText(f, r) }); err != nil {
		return err
	}
	if len(problems) > 0 {
		return exitError{code: exitFailed}
	}
	return nil
}

// unusable says why a step's run would be refused, as the world is now.
func unusable(s flow.Step, cfg config.Config, catalog definition.Catalog) (why, hint string) {
	if s.AgentID != "" {
		if _, ok := cfg.Agent(s.AgentID); !ok {
			return fmt.Sprintf(" names the agent %q, which is not configured", s.AgentID), "goclaw agents lists them"
		}
	}
	if s.Agent == "" {
		return "", ""
	}
	d, ok := catalog.Find(s.Agent)
	blocked, _, _ := strings.Cut(d.Blocked(), "\n")
	switch {
	case !ok:
		return fmt.Sprintf(" names the definition %q, which is not there", s.Agent), "goclaw agents lists them; --workspace DIR looks elsewhere"
	case blocked != "":
		return fmt.Sprintf(" names the definition %q, which can't be used: %s", s.Agent, blocked), ""
	case d.Typed.Input != nil && len(s.Input) == 0:
		return fmt.Sprintf(" gives the definition %q no input, which it wants", s.Agent), "add input: with its fields"
	}
	return "", ""
}

func flowText(f flow.Flow, r flowReport) string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "error: %s\n", p)
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", p)
	}
	if len(r.Problems) > 0 {
		return b.String()
	}
	b.WriteString("flow " + f.Name + "\n")
	byID := map[string]flow.Step{}
	for _, s := range f.Steps {
		byID[s.ID] = s
	}
	for n, wave := range r.Waves {
		for i, id := range wave {
			number := ""
			if i == 0 {
				number = fmt.Sprint(n + 1)
			}
			fmt.Fprintf(&b, "%3s  %s\n", number, stepText(f, byID[id]))
		}
	}
	return b.String()
}

func stepText(f flow.Flow, s flow.Step) string {
	text := s.ID
	switch {
	case s.Agent != "":
		text += " (" + s.Agent + ")"
	case s.AgentID != "":
		text += " (agent " + s.AgentID + ")"
	}
	if s.Each != "" {
		text += " for each of " + s.Each
	}
	if len(s.Takes) > 0 {
		takes := make([]string, len(s.Takes))
		for i, t := range s.Takes {
			takes[i] = t.String()
		}
		text += ", takes " + strings.Join(takes, ", ")
	}
	if len(s.Gives) > 0 {
		text += ", gives " + strings.Join(s.Gives, ", ")
	}
	if len(s.Until) > 0 {
		wants := make([]string, len(s.Until))
		for i, c := range s.Until {
			wants[i] = fmt.Sprintf("%s is %s", c.Field, c.Is)
		}
		text += fmt.Sprintf(", until %s, else back to %s, %d rounds at most", strings.Join(wants, " and "), s.Back, f.MostRounds())
	}
	if s.Optional {
		text += ", optional"
	}
	return text
}
