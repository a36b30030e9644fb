package memory_test

import (
	"context"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

func Example() {
	s := memory.Open()
	defer s.Close()
	ctx := context.Background()
	_, created, err := s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
		ID: "0198f2c4", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued,
	}})
	fmt.Println(created, err)
	active, queued, err := s.Counts(ctx)
	fmt.Println(active, queued, err)
	// Output:
	// true <nil>
	// 0 1 <nil>
}
