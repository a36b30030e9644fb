package sandbox

import (
	"context"
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
//
// It is itself started in a process namespace that we make, if we may. When
// bwrap ends, for whatever reason, the kernel ends all that it started; on its
// own it would leave a process behind if it were killed while it sets up.
type bubblewrap struct {
	path   string
	flags  uintptr // of clone
	stages *stages
}

// findBubblewrap tries the ways to start bwrap, the best first.
func findBubblewrap(ctx context.Context) (Sandbox, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("bubblewrap (bwrap) is not installed")
	}
	ways := []uintptr{unix.CLONE_NEWPID | unix.CLONE_NEWUSER, 0}
	if os.Geteuid() == 0 {
		ways = append([]uintptr{unix.CLONE_NEWPID}, ways...)
	}
	for _, flags := range ways {
		b := bubblewrap{path: path, flags: flags, stages: newStages()}
		if err = try(ctx, b); err == nil {
			return b, nil
		}
	}
	return nil, err
}

// process says how bwrap is started.
func (b bubblewrap) process() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Cloneflags: b.flags, Pdeathsig: syscall.SIGKILL}
	if b.flags&unix.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	return attr
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
	s, err := b.stages.join(job, placer{placeMount, true})
	if err != nil {
		return Result{}, err
	}
	code, err := b.run(ctx, job, s)
	discarded, leaveErr := s.leave()
	return Result{ExitCode: code, Discarded: discarded}, errors.Join(err, leaveErr)
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
	started, startedEnd, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	defer started.Close()
	defer startedEnd.Close()
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
	// The options would make a long line in the command's ps.
	sh := shell()
	cmd := exec.Command(b.path, "--seccomp", "4", "--args", "5", "--", sh, "-c", prelude(sh), sh, job.Command)
	cmd.Env = environment(sandboxHome, "/tmp", job.Env)
	cmd.Stdout, cmd.Stderr = job.Output, job.Output
	cmd.ExtraFiles = []*os.File{startedEnd, filter, options}
	cmd.WaitDelay = Grace
	cmd.SysProcAttr = b.process()

	// The death signal follows the thread that started bwrap.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keepDescriptors()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	startedEnd.Close() // for the pipe to end with bwrap
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		stop(cmd.Process, done)
		return 0, context.Cause(ctx)
	}
	if n, _ := started.Read(make([]byte, 1)); n == 0 {
		return 0, fmt.Errorf("bubblewrap could not start the command (%v)", err) //nolint:errorlint // nil if bwrap ended well
	}
	return cmd.ProcessState.ExitCode(), nil
}

// prelude tells us that the sandbox stands, limits the command and becomes it.
func prelude(sh string) string {
	limits := "ulimit -c 0; "
	if strings.HasSuffix(sh, "bash") {
		limits += fmt.Sprintf("ulimit -u %d; ", maxProcesses)
	}
	return "echo >&3; exec 3>&-; " + limits + `exec "$0" -c "$1"`
}

// stop ends a sandbox: first by asking its processes, then by killing the one
// with which the kernel ends all others, then bwrap itself.
func stop(bwrap *os.Process, done <-chan error) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, pid := range descendants(bwrap.Pid) {
			_ = unix.Kill(pid, sig) // it may have ended; a namespace's first process ignores SIGTERM
		}
		timer := time.NewTimer(Grace)
		defer timer.Stop()
		select {
		case <-done:
			return
		case <-timer.C:
		}
	}
	_ = bwrap.Kill()
	<-done
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
	outside, sealOutside := masks(job, func(path string) bool { return !within(path, job.Workspace) && exposed(job, path) })
	a = append(a, outside...)
	if s == nil {
		a = append(a, "--bind", job.Workspace, job.Workspace)
	} else {
		a = append(a, "--bind", s.path, job.Workspace)
		for _, names := range [][]string{s.folders, s.files} {
			for _, name := range names {
				p, bind := filepath.Join(job.Workspace, name), "--bind"
				if job.keeps(name) {
					bind = "--ro-bind"
				}
				a = append(a, bind, p, p)
			}
		}
	}
	inside, sealInside := masks(job, func(path string) bool {
		name := top(path, job.Workspace)
		return name != "" && (s == nil || s.shows(name) && !job.lendsIn(name))
	})
	a = append(a, inside...)
	// Mount points can be made no more once a mask is read-only.
	return append(append(append(a, sealInside...), sealOutside...), "--chdir", job.Dir)
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

// masks covers those hidden paths that apply. The masks are made read-only by
// seal, in the end.
func masks(job Job, applies func(path string) bool) (cover, seal []string) {
	var shown []string
	for _, path := range job.Hidden {
		if !applies(path) || slices.ContainsFunc(job.Hidden, func(dir string) bool {
			return path != dir && within(path, dir) && !within(job.Workspace, dir)
		}) {
			continue // the mask of the folder around it suffices
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
	return append(cover, shown...), seal
}
