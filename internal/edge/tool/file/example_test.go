package file_test

import (
	"context"
	"fmt"
	"os"

	"goclaw"
	"goclaw/internal/edge/tool/file"
)

func Example() {
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ws)
	arguments := map[string]string{
		"write": `{"path":"hello.txt","content":"hello\n"}`,
		"read":  `{"path":"hello.txt"}`,
	}
	for _, name := range []string{"write", "read"} {
		for _, tool := range file.Tools(file.Options{}) {
			if tool.Spec().Name != name {
				continue
			}
			res := tool.Call(context.Background(), goclaw.Invocation{
				Call:    goclaw.ToolCall{Name: name, Arguments: arguments[name]},
				Profile: goclaw.Profile{Workspace: ws},
			})
			fmt.Println(res.Content)
		}
	}
	// Output:
	// created hello.txt (6 bytes)
	// 1	hello
}
