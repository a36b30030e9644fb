package turn

import (
	"bytes"
	"encoding/json"
	"fmt"

	"goclaw"
)

// A model that makes the same call with the same arguments again and again is
// told so instead of being answered, and is stopped if it goes on. Calls whose
// results differ may be repeated longer: something may be awaited.
const (
	tellSame = 3  // repetitions with one and the same result that are allowed
	stopSame = 6  // then the run ends
	tellAny  = 8  // repetitions whose results differ
	stopAny  = 16 // then the run ends

	recentCalls = 40 // how far back is looked: a loop is short, a long run looks at things again
)

// Loop says what to do about a call that was made before.
type Loop struct {
	Tell string // the result to give instead of making the call; "" to make it
	Stop string // why the run ends; "" to go on
}

// Looping judges a call that the model wants to make next. Repetitions are
// counted among the latest calls, since the last that was new to the run and had
// effects, and since the last takeover: what was looked at before may look
// different after it, or have to be looked at again by a new process.
func Looping(s State, c goclaw.ToolCall) Loop {
	key := callKey(c)
	seen := map[string]bool{}
	count, same, last := 0, 0, ""
	old := -recentCalls
	for _, st := range s.Steps {
		old += len(st.Results)
	}
	for _, st := range s.Steps {
		for _, made := range st.Calls {
			res, done := st.Results[made.ID]
			if !done {
				continue
			}
			if old--; old >= 0 {
				seen[callKey(made)] = true
				continue
			}
			k := callKey(made)
			intent, ran := st.Intents[made.ID]
			if k != key {
				if ran && !intent.Idempotent && !res.IsError && !seen[k] {
					count, same, last = 0, 0, ""
				}
				seen[k] = true
				continue
			}
			seen[k] = true
			count++
			switch {
			case !ran:
				same++
			case count == 1 || res.Content != last:
				same, last = 1, res.Content
			default:
				same++
			}
		}
		if st.Resumed {
			count, same, last = 0, 0, ""
		}
	}
	return judge(c.Name, count, same)
}

func judge(name string, count, same int) Loop {
	switch {
	case same >= stopSame || count >= stopAny:
		return Loop{Stop: fmt.Sprintf("the run went round in circles: it wanted to call %s a %dth time with the same arguments, although it was told not to", name, count+1)}
	case same >= tellSame:
		return Loop{Tell: fmt.Sprintf("Not run: you have made this very call %d times, and its result does not change. "+
			"Use the result that you have, try something else, or finish with what you know.", count)}
	case count >= tellAny:
		return Loop{Tell: fmt.Sprintf("Not run: you have made this very call %d times. If you wait for something, do something else meanwhile, "+
			"or finish with what you know.", count)}
	}
	return Loop{}
}

// callKey is the same for calls that mean the same: spaces in the arguments
// and the order of their keys don't matter.
func callKey(c goclaw.ToolCall) string {
	var v any
	d := json.NewDecoder(bytes.NewReader([]byte(c.Arguments)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return c.Name + "\x00" + c.Arguments
	}
	b, err := json.Marshal(v)
	if err != nil {
		return c.Name + "\x00" + c.Arguments
	}
	return c.Name + "\x00" + string(b)
}
