package terminal_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"goclaw"
	"goclaw/internal/edge/channel/terminal"
)

// silence is a gateway that answers commands and has nothing to tell.
type silence struct{}

func (silence) Receive(context.Context, goclaw.Inbound) (goclaw.Receipt, error) {
	return goclaw.Receipt{Reply: "nothing is going on"}, nil
}

func (silence) Notices(ctx context.Context, _ goclaw.SessionKey) (<-chan goclaw.Notice, error) {
	notices := make(chan goclaw.Notice)
	context.AfterFunc(ctx, func() { close(notices) })
	return notices, nil
}

func (silence) Cancel(context.Context, string) error { return nil }

func (silence) History(context.Context, goclaw.SessionKey) ([]goclaw.RunLog, error) { return nil, nil }

func (silence) Workers(context.Context, goclaw.SessionKey) ([]goclaw.RunInfo, error) { return nil, nil }

func (silence) Status(context.Context) (goclaw.Status, error) { return goclaw.Status{}, nil }

func ExampleRun() {
	const ctrlD = "\x04"
	err := terminal.Run(context.Background(), silence{}, terminal.Options{
		Session: goclaw.MainKey("main"),
		Model:   "anthropic/claude-sonnet-4-5",
		Input:   strings.NewReader(ctrlD),
		Output:  io.Discard,
	})
	fmt.Println(err)
	// Output: <nil>
}
