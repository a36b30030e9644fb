package ask_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"goclaw/internal/edge/ask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	a, err := ask.New(strings.NewReader("\nmaybe\ny\n9\n2\nsk-1\n"), os.Stdout)
	if err != nil {
		panic(err)
	}
	defer a.Close()
	ctx := context.Background()
	name, err := a.Line(ctx, "Name", "rat")
	fmt.Println(name, err)
	yes, err := a.Yes(ctx, "Sure?", false)
	fmt.Println(yes, err)
	n, err := a.Choose(ctx, "Which?", []string{"this", "that"}, 0)
	fmt.Println(n, err)
	key, err := a.Hidden(ctx, "Key")
	fmt.Println(len(key), err)
	_, err = a.Line(ctx, "More", "")
	fmt.Println(err)
	// Output:
	// Name [rat]: rat <nil>
	// Sure? [y/N]: Please answer y or n.
	// Sure? [y/N]: true <nil>
	// Which?
	//   1  this
	//   2  that
	// Number [1]: Please answer with a number from 1 to 2.
	// Number [1]: 1 <nil>
	// Key: 4 <nil>
	// More: the input ended before everything was answered
}

// The end of the context ends a question that nobody answers.
func TestInterrupted(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(r.Close(), w.Close()) }()
	a, err := ask.New(r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	asked := make(chan error)
	go func() {
		_, err := a.Line(ctx, "Name", "")
		asked <- err
	}()
	cancel(why)
	if err := <-asked; !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := a.Hidden(ctx, "Key"); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// What ends without a line break is still an answer.
func TestLastLine(t *testing.T) {
	a, err := ask.New(strings.NewReader("last"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Line(t.Context(), "Name", ""); got != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := a.Yes(t.Context(), "Sure?", true); !errors.Is(err, ask.ErrEnd) {
		t.Error(err)
	}
}

// What an arrow key sends is neither an answer nor the default.
func TestArrowKeys(t *testing.T) {
	var shown strings.Builder
	a, err := ask.New(strings.NewReader("\x1b[B\x1b[B\n3\ncla\x1b[D\x1b[3~ude\nclaude\n\x1bOA\n\n"), &shown)
	if err != nil {
		t.Fatal(err)
	}
	n, err := a.Choose(t.Context(), "Which?", []string{"this", "that", "other"}, 0)
	if n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := a.Line(t.Context(), "Model", "gpt"); got != "claude" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if yes, err := a.Yes(t.Context(), "Sure?", true); !yes || err != nil {
		t.Errorf("%v, %v", yes, err)
	}
	if n := strings.Count(shown.String(), "Arrow keys do nothing here."); n != 3 {
		t.Errorf("it is said %d times: %q", n, shown.String())
	}
}
