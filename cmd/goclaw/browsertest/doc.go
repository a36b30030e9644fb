// Package browsertest drives the web page in Chromium, against the real
// program and a model server over real HTTP. It holds tests only.
//
// Without a Chromium on the machine the tests are skipped, with a line that
// says so; GOCLAW_BROWSER=required makes that a failure, and a path in it
// names the browser.
//
//	go test ./cmd/goclaw/browsertest            # all of them
//	go test ./cmd/goclaw/browsertest -update    # also takes docs/img/page-*.png anew
//
// # Invariants
//
// In every test the page makes no request to another host, breaks no rule of
// its Content-Security-Policy, and writes no error to the console, unless the
// test says which it expects. Nothing is waited for by time: tests wait until
// the page shows what they expect, or fail.
package browsertest
