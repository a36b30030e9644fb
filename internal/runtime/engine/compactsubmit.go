package engine

import (
	"context"
	"fmt"
	"strings"

	"goclaw"
)

// Compact accepts a run that shortens what the model sees of a session. It
// waits its turn there like a message, and is as durable. instructions may say
// what matters. The same once ("" is none) compacts once.
func (e *Engine) Compact(ctx context.Context, key goclaw.SessionKey, instructions, once string) (goclaw.Run, error) {
	if key.IsWorker() {
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("%s is a worker's session, which ends with its task; only conversations are compacted", key))
	}
	profile, err := e.sessionProfile(ctx, key, "")
	if err != nil {
		return goclaw.Run{}, err
	}
	if once != "" {
		once = "compact:" + key.String() + ":" + once
	}
	run, _, err := e.Accept(ctx, goclaw.Acceptance{
		Run: goclaw.Run{Session: key, Trigger: goclaw.TriggerCompact, Task: strings.TrimSpace(instructions), Profile: profile},
		Key: once,
	})
	return run, err
}
