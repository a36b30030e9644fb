package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"goclaw/internal/edge/tool/exec/sandbox"
)

// The test binary is goclaw itself when this variable is set, and when it is
// called by that name, as scripts do. So tests run the real program in
// processes of its own and can kill them.
const asProgram = "GOCLAW_TEST_AS_PROGRAM"

// failpoint names, in that program, the point at which it kills itself:
// "commit.after:3" means when that point is passed for the third time.
const failpoint = "GOCLAW_TEST_FAILPOINT"

// lease shortens, in that program, the leases on runs: "1s".
const lease = "GOCLAW_TEST_LEASE"

func leaseOf(s string) time.Duration {
	d, _ := time.ParseDuration(s) // "" is 0, the program's own
	return d
}

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	if os.Getenv(asProgram) != "" {
		beProgram()
	}
	testscript.Main(m, map[string]func(){"goclaw": beProgram})
}

func beProgram() {
	os.Exit(run(world{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Hook: killAt(os.Getenv(failpoint)), Lease: leaseOf(os.Getenv(lease)),
		Ring: ringIn(os.Getenv(keyringFile)),
	}))
}

// killAt ends the process as a power cut would, at the named point.
func killAt(spec string) func(string) {
	name, nth, ok := strings.Cut(spec, ":")
	if !ok {
		return nil
	}
	left, err := strconv.Atoi(nth)
	if err != nil {
		panic(err)
	}
	counts := make(chan int, 1)
	counts <- left
	return func(point string) {
		if point != name {
			return
		}
		n := <-counts - 1
		if n == 0 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
			select {} // nothing may happen after the point
		}
		counts <- n
	}
}

// program is goclaw in a process of its own, with a home and an environment of
// its own. extra are further variables, KEY=value.
func program(t *testing.T, home string, extra []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		asProgram + "=1", "GOCLAW_HOME=" + home, "HOME=" + filepath.Dir(home), "PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + os.TempDir(), "NO_COLOR=1", "GORACE=atexit_sleep_ms=0",
		"OLLAMA_HOST=127.0.0.1:1", // nobody's: a real one on this machine must not answer
	}, extra...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
