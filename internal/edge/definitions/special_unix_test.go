//go:build unix

package definitions_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"goclaw/internal/edge/definitions"
)

func TestPipeIsNotWaitedFor(t *testing.T) {
	home := t.TempDir()
	pipe := filepath.Join(home, "pipe.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	f := found(definitions.New(definitions.Options{Home: home}).List(""))[pipe]
	if f.Problem != "it is not a regular file" {
		t.Errorf("%+v", f)
	}
	files, err := definitions.Find(pipe)
	if err != nil || len(files) != 1 || files[0].Problem == "" {
		t.Errorf("%v %+v", err, files)
	}
}
