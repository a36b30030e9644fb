package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// A gateway that has become quiet collects its memory as often.
const (
	rests     = 3
	restPause = 100 * time.Millisecond
)

// held is what a process holds by the count of the Go runtime, in bytes.
type held struct{ stacks, objects uint64 }

// SDKCalls makes n streaming calls with nothing but the official SDK, all with
// the request in the file at path. It says ready, begins at a line on in, says
// what the calls hold once all wait, and ends with ctx or when in is closed.
func SDKCalls(ctx context.Context, in io.Reader, out io.Writer, url string, n int, path string) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("sdk calls: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	before, err := settled(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		return nil // not wanted any more
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines) // ends with the process if in stays open
		stop(nil)
	}()
	messages := sdk.NewMessageService(option.WithBaseURL(url), option.WithAPIKey("bench"), option.WithMaxRetries(0))
	began := make(chan struct{}, n)
	var calls sync.WaitGroup
	defer calls.Wait()
	for range n {
		calls.Go(func() { stop(sdkCall(ctx, messages, body, began)) })
	}
	for range n {
		select {
		case <-began:
		case <-ctx.Done():
			return fmt.Errorf("sdk calls: %w", context.Cause(ctx))
		}
	}
	now, err := settled(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, now.stacks-before.stacks, now.objects-before.objects)
	<-ctx.Done()
	return nil
}

// sdkCall is the loop of the SDK's README; began gets a token with the first
// event.
func sdkCall(ctx context.Context, messages sdk.MessageService, body []byte, began chan<- struct{}) error {
	stream := messages.NewStreaming(ctx, param.Override[sdk.MessageNewParams](json.RawMessage(body)))
	defer func() { _ = stream.Close() }() // the process ends with its calls
	var message sdk.Message
	for first := true; stream.Next(); first = false {
		if err := message.Accumulate(stream.Current()); err != nil {
			return err
		}
		if first {
			began <- struct{}{}
		}
	}
	return stream.Err()
}

// settled is what the process holds once what it doesn't need was given back: a
// stack that has become too large is halved by each collection.
func settled(ctx context.Context) (held, error) {
	for range rests {
		debug.FreeOSMemory()
		if err := pause(ctx, restPause); err != nil {
			return held{}, err
		}
	}
	samples := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return held{samples[0].Value.Uint64(), samples[1].Value.Uint64()}, nil
}
