package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const heartbeatFile = "HEARTBEAT.md"

// Heartbeat returns the text of the workspace's HEARTBEAT.md, cut as for a
// prompt; "" if there is none. The error says why it was not read: it is a link
// out of the workspace, say. A file that hasn't changed costs one lstat.
func (l *Loader) Heartbeat(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", heartbeatFile, err)
	}
	const tries = 3 // as in Files
	for try := 1; ; try++ {
		text, err := l.heartbeat(abs)
		switch {
		case err == nil:
			return text, nil
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case !errors.Is(err, errReplaced) || try == tries:
			return "", fmt.Errorf("%s in %s %w", heartbeatFile, abs, err)
		}
	}
}

func (l *Loader) heartbeat(dir string) (string, error) {
	at := folder{dir: dir}
	info, warning, err := at.look(heartbeatFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case warning != "":
		return "", errors.New(warning)
	}
	// The file is keyed as for Files, so the two share what was read.
	f := file(dir, heartbeatFile)
	p, err := l.load(dir, &f, info, room{most: l.opts.FileMaxChars})
	return p.text, err
}
