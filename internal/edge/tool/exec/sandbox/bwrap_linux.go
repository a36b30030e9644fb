package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bubblewrap confines commands to namespaces of their own.
type bubblewrap struct{ path string }

func findBubblewrap() (Sandbox, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("bubblewrap (bwrap) is not installed")
	}
	return bubblewrap{path}, nil
}

// Name implements Sandbox.
func (bubblewrap) Name() string { return bubblewrapName }

const (
	bubblewrapName = "bubblewrap"

	sandboxHome = "/run/home"
	// maxProcesses bounds the processes of one command.
	maxProcesses = 4096
)

// Run implements Sandbox.
func (b bubblewrap) Run(ctx context.Context, job Job) (Result, error) {
	if job.Workspace == "/" {
		return Result{}, errors.New("the workspace / can't be confined")
	}
	if job.Private == nil {
		code, err := b.run(ctx, job, nil)
		return Result{ExitCode: code}, err
	}
	s, err := newStage(job, placeMount)
	if err != nil {
		return Result{}, err
	}
	code, err := b.run(ctx, job, s)
	discarded, settleErr := s.settle()
	return Result{ExitCode: code, Discarded: discarded}, errors.Join(err, settleErr)
}

// placeMount makes a mount point.
func placeMount(_, staged string, isDir bool) error {
	if isDir {
		return os.Mkdir(staged, 0o755)
	}
	f, err := os.OpenFile(staged, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (b bubblewrap) run(ctx context.Context, job Job, s *stage) (int, error) {
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	defer status.Close()
	defer statusEnd.Close()
	filter, err := memoryFile("seccomp", encode(guardFilter()))
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	defer filter.Close()
	options, err := memoryFile("options", []byte(strings.Join(b.options(job, s), "\x00")))
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	defer options.Close()
	sh := shell()
	limits := "ulimit -c 0; "
	if strings.HasSuffix(sh, "bash") {
		limits += fmt.Sprintf("ulimit -u %d; ", maxProcesses)
	}
	// The options would make a long line in the command's ps.
	cmd := exec.Command(b.path, "--json-status-fd", "3", "--seccomp", "4", "--args", "5",
		"--", sh, "-c", limits+`exec "$0" -c "$1"`, sh, job.Command)
	cmd.Env = environment(sandboxHome, "/tmp", job.Env)
	cmd.Stdout, cmd.Stderr = job.Output, job.Output
	cmd.ExtraFiles = []*os.File{statusEnd, filter, options}
	cmd.WaitDelay = Grace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	// --die-with-parent follows the thread that started bwrap.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keepDescriptors()
	err = cmd.Start()
	statusEnd.Close() // for the pipe to end with bwrap
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	watch := watchStatus(status)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = watch.stop(cmd.Process, done)
	}
	<-watch.finished
	watch.awaitEnd()
	if ctx.Err() != nil && (err != nil || watch.exit == nil) {
		return 0, context.Cause(ctx)
	}
	if watch.exit == nil {
		return 0, fmt.Errorf("bubblewrap could not start the command (%w)", err)
	}
	return *watch.exit, nil
}

// options describes the sandbox to bwrap. Later mounts cover earlier ones.
func (b bubblewrap) options(job Job, s *stage) []string {
	a := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--hostname", "sandbox",
	}
	if !job.Network {
		a = append(a, "--unshare-net")
	}
	for _, dir := range systemDirs {
		target, err := os.Readlink(dir)
		if err == nil {
			a = append(a, "--symlink", target, dir)
		} else {
			a = append(a, "--ro-bind-try", dir, dir)
		}
	}
	for _, p := range etcPaths(job.Network) {
		a = append(a, "--ro-bind", p, p)
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", sandboxHome)
	for _, p := range job.ReadOnly {
		a = append(a, "--ro-bind-try", p, p)
	}
	a = append(a, masks(job, func(path string) bool { return !within(path, job.Workspace) && exposed(job, path) })...)
	if s == nil {
		a = append(a, "--bind", job.Workspace, job.Workspace)
	} else {
		a = append(a, "--bind", s.path, job.Workspace)
		for _, names := range [][]string{s.folders, s.files} {
			for _, name := range names {
				p := filepath.Join(job.Workspace, name)
				a = append(a, "--bind", p, p)
			}
		}
	}
	a = append(a, masks(job, func(path string) bool {
		name := top(path, job.Workspace)
		return name != "" && (s == nil || s.shows(name))
	})...)
	return append(a, "--chdir", job.Dir)
}

func (s *stage) shows(name string) bool {
	_, ok := s.placed[name]
	return ok
}

// exposed reports whether path shows through a mount of the host.
func exposed(job Job, path string) bool {
	for _, dirs := range [][]string{systemDirs[:], job.ReadOnly} {
		for _, dir := range dirs {
			if within(path, dir) {
				return true
			}
		}
	}
	return false
}

// masks covers those hidden paths that apply.
func masks(job Job, applies func(path string) bool) []string {
	var cover, shown, seal []string
	// What lies beneath a folder is covered with it, if the folder is: the
	// workspace may lie in GOCLAW_HOME, and shows all the same.
	hidden := slices.DeleteFunc(slices.Clone(job.Hidden), func(path string) bool { return !applies(path) })
	for _, path := range hidden {
		if coveredBy(path, hidden) {
			continue
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil || info.Mode()&os.ModeSymlink != 0:
			continue // nothing there, or a link, whose target is hidden itself
		case info.IsDir():
			cover = append(cover, "--tmpfs", path)
			seal = append(seal, "--remount-ro", path)
		default:
			cover = append(cover, "--ro-bind", "/dev/null", path)
		}
		for _, p := range job.Shown {
			if within(p, path) {
				shown = append(shown, "--ro-bind-try", p, p)
			}
		}
	}
	return append(append(cover, shown...), seal...)
}

// coveredBy reports whether path lies beneath one of the folders.
func coveredBy(path string, folders []string) bool {
	for _, dir := range folders {
		if path != dir && within(path, dir) {
			if info, err := os.Lstat(dir); err == nil && info.IsDir() {
				return true
			}
		}
	}
	return false
}

// statusWatch follows what bwrap says about the processes it started.
type statusWatch struct {
	started  chan struct{} // closed once init is known or will never be
	finished chan struct{} // closed once bwrap has said everything
	init     int           // process id of the sandbox's first process, or 0
	pidfd    int           // of init, or -1
	exit     *int
}

// watchStatus reads status to its end, in a goroutine that closes finished.
func watchStatus(status *os.File) *statusWatch {
	w := &statusWatch{started: make(chan struct{}), finished: make(chan struct{}), pidfd: -1}
	go func() {
		defer close(w.finished)
		dec := json.NewDecoder(status)
		var first struct {
			Child int `json:"child-pid"`
		}
		if dec.Decode(&first) == nil && first.Child > 0 {
			w.init = first.Child
			if fd, err := unix.PidfdOpen(first.Child, 0); err == nil {
				w.pidfd = fd
			}
		}
		close(w.started)
		for {
			var next struct {
				Exit *int `json:"exit-code"`
			}
			if dec.Decode(&next) != nil {
				return
			}
			if next.Exit != nil {
				w.exit = next.Exit
			}
		}
	}()
	return w
}

// stop ends the sandbox: first by asking its processes, then by killing its
// first one, with which the kernel ends all others, then bwrap itself.
func (w *statusWatch) stop(bwrap *os.Process, done <-chan error) error {
	timer := time.NewTimer(Grace)
	defer timer.Stop()
	select {
	case <-w.started:
		if w.init > 0 {
			// The first process is the group's leader and ignores it.
			_ = unix.Kill(-w.init, unix.SIGTERM)
		}
	case err := <-done:
		return err
	case <-timer.C:
	}
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	if w.pidfd >= 0 {
		_ = unix.PidfdSendSignal(w.pidfd, unix.SIGKILL, nil, 0)
		timer.Reset(Grace)
		select {
		case err := <-done:
			return err
		case <-timer.C:
		}
	}
	_ = bwrap.Kill()
	return <-done
}

// awaitEnd returns once the sandbox's first process, and so every other, is
// gone: bwrap itself ends a little earlier.
func (w *statusWatch) awaitEnd() {
	if w.pidfd < 0 {
		return
	}
	defer unix.Close(w.pidfd)
	fds := []unix.PollFd{{Fd: int32(w.pidfd), Events: unix.POLLIN}}
	for range 4 {
		if n, err := unix.Poll(fds, int(Grace.Milliseconds())); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		_ = unix.PidfdSendSignal(w.pidfd, unix.SIGKILL, nil, 0)
	}
}
