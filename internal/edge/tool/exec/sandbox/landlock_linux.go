package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

const (
	landlockName = "landlock"
	// minABI is the first version of Landlock that keeps signals inside.
	minABI = 6
)

// landlocked confines commands by denying access, in a child that is this very
// program (see MaybeChild).
type landlocked struct {
	self   string
	stages *stages
}

func findLandlock(ctx context.Context) (Sandbox, error) {
	if os.Getenv(childMark) != "" {
		return nil, errors.New("landlock: this process is itself a sandbox's child")
	}
	abi, err := llsys.LandlockGetABIVersion()
	if err != nil {
		return nil, errors.New("landlock: the kernel doesn't offer it")
	}
	if abi < minABI {
		return nil, fmt.Errorf("landlock: the kernel has version %d, %d is needed (Linux 6.12)", abi, minABI)
	}
	if auditArch() == 0 {
		return nil, errors.New("landlock: no seccomp filter for this machine")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	l := landlocked{self, newStages()}
	return l, try(ctx, l)
}

// Name implements Sandbox.
func (landlocked) Name() string { return landlockName }

// order tells the child what to do.
type order struct {
	Shell, Command string
	Dir            string
	Env            []string
	Network        bool
	ReadDirs       []string
	ReadFiles      []string
	WriteDirs      []string
	WriteFiles     []string
}

// Run implements Sandbox.
func (l landlocked) Run(ctx context.Context, job Job) (Result, error) {
	if job.Workspace == "/" {
		return Result{}, errors.New("the workspace / can't be confined")
	}
	parent := cmp.Or(job.StageDir, os.TempDir())
	sweep(parent)
	temp, lock, err := lockedFolder(parent)
	if err != nil {
		return Result{}, fmt.Errorf("landlock: make a temporary folder: %w", err)
	}
	defer lock.Close()
	defer os.RemoveAll(temp)
	if job.Private == nil && job.StageDir != "" && slices.ContainsFunc(job.Hidden, func(p string) bool { return top(p, job.Workspace) != "" }) {
		// Granting the root's entries one by one would keep the command from
		// making new ones.
		job.Rule = "hidden"
		job.Private = func(name string) bool {
			return slices.Contains(job.Hidden, filepath.Join(job.Workspace, name))
		}
	}
	if job.Private == nil {
		o := newOrder(job, temp)
		o.Dir = job.Dir
		o.grant(job, job.Workspace)
		code, err := l.run(ctx, job, o)
		return Result{ExitCode: code}, err
	}
	s, err := l.stages.join(job, placer{func(host, staged string, _ bool) error { return os.Symlink(host, staged) }, false})
	if err != nil {
		return Result{}, err
	}
	o := newOrder(job, temp)
	o.Dir = s.dir(job.Dir)
	o.WriteDirs = append(o.WriteDirs, s.path)
	for name := range s.placed {
		path := filepath.Join(job.Workspace, name)
		if !job.keeps(name) {
			o.grant(job, path)
		} else if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
			o.grantReading(job, path)
		}
	}
	for _, lent := range job.Lent {
		o.ReadFiles = append(o.ReadFiles, lent.Path)
	}
	code, err := l.run(ctx, job, o)
	discarded, leaveErr := s.leave()
	return Result{ExitCode: code, Discarded: discarded}, errors.Join(err, leaveErr)
}

func newOrder(job Job, temp string) order {
	o := order{
		Shell: shell(), Command: job.Command, Network: job.Network,
		Env:        environment(temp, temp, job.Env),
		WriteDirs:  []string{temp},
		WriteFiles: existing([]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}),
	}
	readable := append(existing(systemDirs[:]), etcPaths(job.Network)...)
	for _, p := range append(readable, existing(job.ReadOnly)...) {
		o.grantReading(job, p)
	}
	for _, p := range job.Shown {
		o.grantReading(Job{}, p)
	}
	return o
}

// grant lets the command change path, but for what is hidden beneath it.
func (o *order) grant(job Job, path string) {
	o.walk(job, path, &o.WriteDirs, &o.WriteFiles)
}

// grantReading lets the command read path, but for what is hidden beneath it.
func (o *order) grantReading(job Job, path string) {
	o.walk(job, path, &o.ReadDirs, &o.ReadFiles)
}

// walk grants a folder as a whole if nothing beneath it is hidden, else its
// entries one by one.
func (o *order) walk(job Job, path string, dirs, files *[]string) {
	if slices.Contains(job.Hidden, path) {
		return
	}
	info, err := os.Lstat(path)
	if err != nil {
		return // gone since
	}
	if info.Mode()&os.ModeSymlink != 0 {
		if dirs != &o.ReadDirs {
			return // its target is in the workspace, or out of reach
		}
		if info, err = os.Stat(path); err != nil {
			return
		}
	}
	if !info.IsDir() {
		if info.Mode().IsRegular() {
			*files = append(*files, path)
		}
		return
	}
	beneath := func(p string) bool { return p != path && within(p, path) }
	if !slices.ContainsFunc(job.Hidden, beneath) && (dirs != &o.ReadDirs || !within(job.Workspace, path)) {
		*dirs = append(*dirs, path)
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if p := filepath.Join(path, e.Name()); p != job.Workspace {
			o.walk(job, p, dirs, files)
		}
	}
}

// run starts the child, gives it its order and follows it to its end. As long
// as the order's pipe stays open the child knows that we live.
func (l landlocked) run(ctx context.Context, job Job, o order) (int, error) {
	orders, ordersEnd, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("landlock: %w", err)
	}
	defer ordersEnd.Close()
	trouble, troubleEnd, err := os.Pipe()
	if err != nil {
		orders.Close()
		return 0, fmt.Errorf("landlock: %w", err)
	}
	defer trouble.Close()
	cmd := exec.Command(l.self)
	cmd.Args = []string{keeperName}
	cmd.Env = []string{childMark + "=1"}
	cmd.Stdout, cmd.Stderr = job.Output, job.Output
	cmd.ExtraFiles = []*os.File{orders, troubleEnd}
	cmd.WaitDelay = Grace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for us
	keepDescriptors()
	err = cmd.Start()
	orders.Close()
	troubleEnd.Close()
	if err != nil {
		return 0, fmt.Errorf("landlock: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	sendErr := json.NewEncoder(ordersEnd).Encode(o)
	var waitErr error
	select {
	case waitErr = <-done:
	case <-ctx.Done():
		ordersEnd.Close()
		timer := time.NewTimer(3 * Grace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			_ = cmd.Process.Kill()
			<-done
		}
		return 0, context.Cause(ctx)
	}
	what, _ := io.ReadAll(io.LimitReader(trouble, 4096))
	if text := strings.TrimSpace(string(what)); text != "" {
		return 0, fmt.Errorf("landlock could not start the command: %s", text)
	}
	var exit *exec.ExitError
	if waitErr == nil || errors.Is(waitErr, exec.ErrWaitDelay) {
		return 0, sendErr
	}
	if !errors.As(waitErr, &exit) || exit.ExitCode() < 0 {
		return 0, fmt.Errorf("landlock: %w", waitErr)
	}
	return exit.ExitCode(), nil
}
