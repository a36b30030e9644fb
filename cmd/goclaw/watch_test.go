package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/definitions"
)

// What is broken at the start is told, and each change within one look: in a
// folder made later, below an empty one, and of many files only the first few.
func TestWatcherTells(t *testing.T) {
	home := filepath.Join(t.TempDir(), "agents")
	at := time.Now().Add(-24 * time.Hour)
	put := func(name, tool string) {
		t.Helper()
		path := filepath.Join(home, name+".md")
		text := fmt.Sprintf("---\nname: %s\ndescription: x\ntools: [%s]\n---\nYou.\n", filepath.Base(name), tool)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute) // real clocks stand still for milliseconds
		for ; path != filepath.Dir(home); path = filepath.Dir(path) {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("first", "raed")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		w := watcher{
			agents:  map[string]definition.Agent{"main": {ID: "main"}},
			library: &library{scanner: definitions.New(definitions.Options{Home: home}), parsed: map[string]parsedFile{}},
			publish: func(n goclaw.Notice) { mu.Lock(); defer mu.Unlock(); told = append(told, n.Text) },
			log:     slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { w.run(ctx) })
		defer func() { cancel(); done.Wait() }()
		look := func(what string, want ...string) {
			t.Helper()
			time.Sleep(2 * watchEvery)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(told) != len(want) {
				t.Fatalf("%s: told %q", what, told)
			}
			for i := range want {
				if !strings.Contains(told[i], want[i]) {
					t.Errorf("%s: told %q, want %q", what, told[i], want[i])
				}
			}
			told = nil
		}
		look("the start", "first.md:4:9: unknown tool")
		look("nothing")
		put("first", "read")
		look("mended", "all definition files are good again")
		put("sub/ok", "read")
		if err := os.Remove(filepath.Join(home, "sub", "ok.md")); err != nil {
			t.Fatal(err)
		}
		look("an empty folder")
		put("sub/second", "raed")
		look("a broken one in it", "second.md:4:9: unknown tool")
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
		look("the folder is gone", "all definition files are good again")
		for i := range 40 {
			put(fmt.Sprintf("many%02d", i), "raed")
		}
		look("many", "many00.md", "many01.md", "many02.md", "many03.md", "many04.md", "35 more files are broken; goclaw agents check lists them")
	})
}
