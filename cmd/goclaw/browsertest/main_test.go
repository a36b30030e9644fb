package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "take the screenshots in docs/img anew")

// binary is the program, browser a context of the one browser of all tests.
var (
	binary  string
	browser context.Context
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	want := os.Getenv("GOCLAW_BROWSER")
	path := chromium(want)
	if path == "" {
		const absent = "there is no Chromium on this machine (apt-get install chromium)"
		if want != "" {
			fmt.Printf("FAILED: the browser tests: GOCLAW_BROWSER=%s asks for them, and %s\n", want, absent)
			return 1
		}
		fmt.Println("SKIPPED: the browser tests: " + absent)
		return 0
	}
	dir, err := os.MkdirTemp("", "goclaw-browser-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "goclaw")
	if out, err := exec.Command("go", "build", "-o", binary, "goclaw/cmd/goclaw").CombinedOutput(); err != nil {
		fmt.Printf("build goclaw: %v\n%s", err, out)
		return 1
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Env("TZ=UTC", "HOME="+dir),
	}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root has none
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	defer release()
	ctx, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		fmt.Printf("start %s: %v\n", path, err)
		return 1
	}
	browser = ctx
	code := m.Run()
	if err := chromedp.Cancel(ctx); err != nil {
		fmt.Println("stop the browser:", err)
	}
	return code
}

func chromium(named string) string {
	if filepath.IsAbs(named) {
		return named
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
