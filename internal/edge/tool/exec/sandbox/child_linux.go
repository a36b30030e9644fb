package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// The children that a process becomes when it is called by these names.
const (
	keeperName = "goclaw-sandbox-keeper"
	leafName   = "goclaw-sandbox-leaf"
	// childMark in the environment keeps a child from having children of its
	// own, should MaybeChild not have been called.
	childMark = "GOCLAW_SANDBOX_CHILD"
)

// File descriptors that a child is given.
const (
	ordersFD  = 3 // an order; closed when the parent has died or wants the end
	troubleFD = 4 // takes what went wrong before the command ran
)

// MaybeChild does a sandbox child's work, and never returns, if this process
// was started as one. A program that uses Detect calls it first of all in
// main, before it touches arguments, files or the environment.
func MaybeChild() {
	if len(os.Args) == 0 || os.Getenv(childMark) == "" {
		return
	}
	switch os.Args[0] {
	case keeperName:
		trouble := os.NewFile(troubleFD, "trouble")
		code, err := keep(trouble)
		if err != nil {
			fmt.Fprintln(trouble, err)
		}
		syscall.Exit(code) // there is nothing to finish
	case leafName:
		fmt.Fprintln(os.NewFile(troubleFD, "trouble"), confine())
		syscall.Exit(126)
	}
}

// keep runs the command in a child of its own, stays outside its confinement
// and ends everything that came of it when it ends, when the parent wants it,
// or when the parent dies.
//
// The error says why the command didn't run; trouble is closed once it does.
func keep(trouble *os.File) (int, error) {
	runtime.LockOSThread() // the leaf's death signal follows this thread
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(troubleFD)
	orders := os.NewFile(ordersFD, "orders")
	var o order
	dec := json.NewDecoder(orders)
	if err := dec.Decode(&o); err != nil {
		return 126, fmt.Errorf("read the order: %w", err)
	}
	// What loses its parent becomes ours, so that nothing escapes by setsid.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 126, fmt.Errorf("become subreaper: %w", err)
	}
	leaf, err := startLeaf(o, trouble)
	if err != nil {
		return 126, err
	}
	trouble.Close() // so that the parent sees its end when the command starts
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), orders))
	}()
	ended := make(chan int, 1)
	go func() { ended <- reapUntil(leaf) }()
	select {
	case code := <-ended:
		endAll()
		return code, nil
	case <-stopped:
	}
	_ = unix.Kill(-leaf, unix.SIGTERM)
	select {
	case <-ended:
	case <-time.After(Grace):
		_ = unix.Kill(leaf, unix.SIGKILL)
		<-ended
	}
	endAll()
	return 128 + int(unix.SIGTERM), nil
}

func startLeaf(o order, trouble *os.File) (pid int, err error) {
	orders, ordersEnd, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer orders.Close()
	defer ordersEnd.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{leafName}
	cmd.Env = []string{childMark + "=1"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{orders, trouble}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the command's process: %w", err)
	}
	if err := json.NewEncoder(ordersEnd).Encode(o); err != nil {
		return 0, fmt.Errorf("pass the order on: %w", err)
	}
	return cmd.Process.Pid, nil
}

// reapUntil reaps all children until pid has ended, and returns its exit code.
func reapUntil(pid int) int {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 126
		}
		if got != pid {
			continue
		}
		if status.Signaled() {
			return 128 + int(status.Signal())
		}
		return status.ExitStatus()
	}
}

// endAll kills and reaps until no descendant is left. Stopping them all first
// keeps them from multiplying meanwhile.
func endAll() {
	for {
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range descendants(os.Getpid()) {
				_ = unix.Kill(pid, sig)
			}
		}
		for {
			_, err := unix.Wait4(-1, nil, 0, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if err == nil {
				break // its children may have become ours: look again
			}
		}
	}
}

// confine restricts this process for good and becomes the command. It returns
// only if that failed.
func confine() error {
	runtime.LockOSThread() // filter and exec must happen on one thread
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(troubleFD)
	var o order
	if err := json.NewDecoder(os.NewFile(ordersFD, "orders")).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	rules := landlock.V6
	if o.Network {
		rules.HandledAccessNet = 0
	}
	err := rules.Restrict(
		landlock.RODirs(o.ReadDirs...).IgnoreIfMissing(),
		landlock.ROFiles(o.ReadFiles...).IgnoreIfMissing(),
		landlock.RWDirs(o.WriteDirs...).WithRefer().IgnoreIfMissing(),
		landlock.RWFiles(o.WriteFiles...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("restrict files: %w", err)
	}
	// What the bounding set left out doesn't come back with exec; this is for
	// what would be inherited past it.
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := installFilter(socketFilter(o.Network)); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", o.Shell, syscall.Exec(o.Shell, []string{o.Shell, "-c", o.Command}, o.Env))
}

// dropCapabilities keeps root's powers from the command; others have none.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}
