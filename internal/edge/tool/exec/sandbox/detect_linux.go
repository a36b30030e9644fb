package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Detect returns the first sandbox that works here, having tried it, or nil
// and why there is none. It takes some ten milliseconds.
func Detect(ctx context.Context) (Sandbox, string) {
	var reasons []string
	for _, name := range []string{bubblewrapName, landlockName} {
		s, why := Find(ctx, name)
		if s != nil {
			return s, ""
		}
		reasons = append(reasons, why)
	}
	return nil, strings.Join(reasons, "; ")
}

// Find returns the sandbox of that name, bubblewrap or landlock, having tried
// it, or nil and why it can't be had.
func Find(ctx context.Context, name string) (Sandbox, string) {
	find := map[string]func(context.Context) (Sandbox, error){bubblewrapName: findBubblewrap, landlockName: findLandlock}[name]
	if find == nil {
		return nil, fmt.Sprintf("there is no sandbox %q", name)
	}
	s, err := find(ctx)
	if err != nil {
		return nil, err.Error()
	}
	return s, ""
}

// try runs a harmless command. It makes no folder, which a kill could leave.
func try(ctx context.Context, s Sandbox) error {
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	var out bytes.Buffer
	res, err := s.Run(ctx, Job{Command: "echo ok", Dir: dir, Workspace: dir, Output: &out})
	if err != nil {
		return fmt.Errorf("%s doesn't work: %w", s.Name(), err)
	}
	if text := strings.TrimSpace(out.String()); res.ExitCode != 0 || text != "ok" {
		return fmt.Errorf("%s doesn't work: exit code %d, %q", s.Name(), res.ExitCode, text)
	}
	return nil
}
