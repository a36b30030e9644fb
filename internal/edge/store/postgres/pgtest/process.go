package pgtest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// process is a command that was started.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start runs cmd from a thread that lives as long as cmd does: on Linux a
// child that shall die with its parent dies with the thread that made it.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how a server ended that was told to is of no interest
		close(p.done)
	}()
	return p, <-started
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }
