package turn

import (
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// Outside are the calls of a run to tools that its caller runs.
type Outside struct {
	Open []goclaw.ToolCall // without a result, in the order of the reply
	done map[string]bool   // ids of those that have one
}

// CallerCalls finds the calls of the last reply to the caller's tools.
func CallerCalls(r goclaw.Run, s State) Outside {
	o := Outside{done: map[string]bool{}}
	last := s.last()
	if last == nil {
		return o
	}
	for _, c := range last.Calls {
		_, begun := last.Intents[c.ID]
		if !begun || !slices.ContainsFunc(r.Profile.Caller, func(t goclaw.ToolSpec) bool { return t.Name == c.Name }) {
			continue
		}
		if _, done := last.Results[c.ID]; done {
			o.done[c.ID] = true
		} else {
			o.Open = append(o.Open, c)
		}
	}
	return o
}

// Take picks the results that are still wanted. problem says which call is
// missing, there twice or unknown.
func (o Outside) Take(results []goclaw.ToolResult) (wanted []goclaw.ToolResult, problem string) {
	given := map[string]bool{}
	for _, r := range results {
		if given[r.CallID] {
			return nil, fmt.Sprintf("call %s has two results; give one", r.CallID)
		}
		given[r.CallID] = true
		i := slices.IndexFunc(o.Open, func(c goclaw.ToolCall) bool { return c.ID == r.CallID })
		switch {
		case i >= 0:
			r.Name = o.Open[i].Name
			wanted = append(wanted, r)
		case !o.done[r.CallID]:
			return nil, fmt.Sprintf("the run waits for no call %s", r.CallID)
		}
	}
	var missing []string
	for _, c := range o.Open {
		if !given[c.ID] {
			missing = append(missing, c.ID)
		}
	}
	if len(missing) > 0 {
		return nil, "results are missing for: " + strings.Join(missing, ", ")
	}
	return wanted, ""
}
