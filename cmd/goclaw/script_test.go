package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"goclaw/internal/edge/provider/providertest"
)

// The scripts run the real program, each in a home of its own without any key.
// What they can say besides testscript's own commands stands at the functions
// below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOCLAW_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // it sleeps for a second after each run of the program
			e.Setenv("BYTES", "\xff\xfe")
			e.Values[daemonsKey{}] = daemons{}
			e.Values[modelKey{}] = &model{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refused": refused, "until": until,
			"model": modelServer, "received": received, "daemon": daemon, "ends": ends,
			"holdhome": holdHome, "fakegateway": fakeGateway,
			"http": httpRequest, "json": jsonValue, "jsonkeys": jsonKeys,
			"mode": fileMode, "many": many, "bytes": rawBytes, "schema": schemaVersion, "olddb": oldDatabase, "damage": damage,
			"sumtotal": sumTotal,
		},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return os.Geteuid() == 0, nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

const patience = 20 * time.Second

// exits CODE PROGRAM ARG...: the program ends with that code and no panic.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if text := ts.ReadFile("stderr"); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("it panicked:\n%s", text)
	}
}

// refused CODE WORDS ARG...: goclaw ARG... says nothing but one line to
// standard error, in which WORDS, a regular expression, occur.
func refused(ts *testscript.TestScript, _ bool, args []string) {
	exits(ts, false, append([]string{args[0], "goclaw"}, args[2:]...))
	said := ts.ReadFile("stderr")
	if ts.ReadFile("stdout") != "" || !strings.HasPrefix(said, "goclaw: ") || strings.Count(said, "\n") != 1 {
		ts.Fatalf("want one line to standard error and nothing else, got:\n%s%s", ts.ReadFile("stdout"), said)
	}
	if !regexp.MustCompile(args[1]).MatchString(said) {
		ts.Fatalf("want %q in: %s", args[1], said)
	}
}

// until WORDS PROGRAM ARG...: runs the program again and again until its
// standard output matches.
func until(ts *testscript.TestScript, _ bool, args []string) {
	match := regexp.MustCompile(args[0]).MatchString
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); ; {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && match(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("no %q within %s", args[0], patience)
		}
	}
}

// model WIRE SCRIPT: a model server that answers as the script says, as the
// provider WIRE of the environment.
func modelServer(ts *testscript.TestScript, _ bool, args []string) {
	script, err := providertest.ParseScript([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	s := providertest.New(script)
	url, err := s.Start()
	ts.Check(err)
	ts.Defer(s.Close)
	ts.Value(modelKey{}).(*model).Server = s
	if args[0] == providertest.WireOpenAI {
		url += "/v1"
	}
	prefix := strings.ToUpper(args[0])
	ts.Setenv(prefix+"_API_KEY", "test-key")
	ts.Setenv(prefix+"_BASE_URL", url)
}

// model is the model server that was started last.
type model struct{ *providertest.Server }

type modelKey struct{}

// received N FILE: the body of the N-th request that the model server started
// last has got, from 1, becomes FILE.
func received(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	requests := ts.Value(modelKey{}).(*model).Requests()
	if n < 1 || n > len(requests) {
		ts.Fatalf("no request %d: there were %d", n, len(requests))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), requests[n-1].Raw, 0o600))
}

// daemons are a script's background programs by name.
type daemons map[string]*background

type daemonsKey struct{}

type background struct {
	cmd    *exec.Cmd
	out    *os.File
	err    *os.File
	copied sync.WaitGroup
}

// daemon NAME ARG...: goclaw ARG... in the background. It has printed its first
// line, whose last word becomes $NAME_URL, when the next command runs; with -
// before the name it is not waited for.
func daemon(ts *testscript.TestScript, _ bool, args []string) {
	name, quiet := strings.CutPrefix(args[0], "-")
	path, err := exec.LookPath("goclaw")
	ts.Check(err)
	b := &background{cmd: exec.Command(path, args[1:]...)}
	b.cmd.Dir = ts.MkAbs(".")
	b.cmd.Env = scriptEnv(ts)
	out, err := b.cmd.StdoutPipe()
	ts.Check(err)
	b.out, err = os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	b.err, err = os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	b.cmd.Stderr = b.err
	ts.Check(b.cmd.Start())
	ts.Value(daemonsKey{}).(daemons)[name] = b
	ts.Defer(func() {
		_ = b.cmd.Process.Kill() // it may have ended
		b.copied.Wait()
		_ = b.cmd.Wait()
		ts.Check(errors.Join(b.out.Close(), b.err.Close()))
	})
	first := make(chan string, 1)
	b.copied.Go(func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n') // an early end shows in what was read
		_, _ = b.out.WriteString(line)
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(b.out, r)
	})
	if quiet {
		return
	}
	select {
	case line := <-first:
		words := strings.Fields(line)
		if len(words) == 0 {
			b.copied.Wait()
			ts.Fatalf("%s ended: %v\n%s", name, b.cmd.Wait(), ts.ReadFile(name+".err"))
		}
		ts.Setenv(name+"_URL", words[len(words)-1])
	case <-time.After(patience):
		ts.Fatalf("%s printed nothing", name)
	}
}

func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", keyringFile, "GOCLAW_PASSPHRASE", "GOCLAW_HOME", "GOCLAW_TOKEN", "GOCLAW_MODEL", "NO_COLOR", "GORACE",
		"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// ends NAME SIGNAL CODE WITHIN: the daemon ends with that code (-1: killed) in
// time after the signal (NONE: by itself). What it prints is in NAME.out and
// NAME.err as it comes.
func ends(ts *testscript.TestScript, _ bool, args []string) {
	b := ts.Value(daemonsKey{}).(daemons)[args[0]]
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	within, err := time.ParseDuration(args[3])
	ts.Check(err)
	if sig, ok := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[args[1]]; ok {
		ts.Check(b.cmd.Process.Signal(sig))
	}
	slow := time.AfterFunc(within, func() { _ = b.cmd.Process.Signal(syscall.SIGQUIT) })
	b.copied.Wait()
	err = b.cmd.Wait()
	inTime := slow.Stop()
	if got := b.cmd.ProcessState.ExitCode(); !inTime || got != want {
		ts.Fatalf("in time: %v, exit code %d, want %d (%v)\n%s", inTime, got, want, err, ts.ReadFile(args[0]+".err"))
	}
}

// holdhome: the test holds the home's lock, as another process would.
func holdHome(ts *testscript.TestScript, _ bool, _ []string) {
	h := home(ts.Getenv("GOCLAW_HOME"))
	ts.Check(h.prepare())
	lock, err := h.lock()
	ts.Check(err)
	ts.Defer(func() { ts.Check(lock.Close()) })
}

// fakegateway STATUS: as holdhome, with a server that answers every request
// with that status. 0 is a server that is gone.
func fakeGateway(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	holdHome(ts, false, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	ts.Defer(srv.Close)
	if status == 0 {
		srv.Close()
	}
	ts.Check(home(ts.Getenv("GOCLAW_HOME")).announceListener(listener{URL: srv.URL, PID: os.Getpid()}))
}

// http STATUS METHOD URL [TOKEN [BODY]]: the answer's body becomes the file
// "body".
func httpRequest(ts *testscript.TestScript, _ bool, args []string) {
	args = append(args, "", "")
	req, err := http.NewRequest(args[1], args[2], strings.NewReader(args[4]))
	ts.Check(err)
	if args[3] != "" {
		req.Header.Set("Authorization", "Bearer "+args[3])
	}
	res, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if strconv.Itoa(res.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", res.StatusCode, args[0], body)
	}
}

// json FILE PATH VALUE: the value at the path of keys and indexes, with len for a
// list's length and sum(KEY) for the sum over a list.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	got := fmt.Sprint(at(ts, args[0], args[1]))
	if matched := regexp.MustCompile(`^(?s:` + args[2] + `)$`).MatchString(got); matched == neg {
		ts.Fatalf("%s is %q, want %q", args[1], got, args[2])
	}
}

// jsonkeys FILE PATH KEY...: the object at the path has these keys and no
// others.
func jsonKeys(ts *testscript.TestScript, _ bool, args []string) {
	object, ok := at(ts, args[0], args[1]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is no object", args[1])
	}
	var got []string
	for k := range object {
		got = append(got, k)
	}
	want := slices.Clone(args[2:])
	slices.Sort(got)
	slices.Sort(want)
	if !reflect.DeepEqual(got, want) {
		ts.Fatalf("%s has the keys %v\nwant %v", args[1], got, want)
	}
}

func at(ts *testscript.TestScript, file, path string) any {
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	d.UseNumber()
	ts.Check(d.Decode(&v))
	if d.More() {
		ts.Fatalf("%s holds more than one JSON value", file)
	}
	for key := range strings.SplitSeq(path, ".") {
		if key == "" {
			continue
		}
		switch t := v.(type) {
		case map[string]any:
			v = t[key]
		case []any:
			v = element(ts, t, key)
		}
	}
	return v
}

func element(ts *testscript.TestScript, list []any, key string) any {
	if key == "len" {
		return len(list)
	}
	if name, ok := strings.CutPrefix(key, "sum("); ok {
		var sum int64
		for _, e := range list {
			n, err := e.(map[string]any)[strings.TrimSuffix(name, ")")].(json.Number).Int64()
			ts.Check(err)
			sum += n
		}
		return sum
	}
	i, err := strconv.Atoi(key)
	ts.Check(err)
	if i >= len(list) {
		ts.Fatalf("there are only %d elements", len(list))
	}
	return list[i]
}

// mode PERMISSIONS FILE
func fileMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%#o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// many BYTES FILE: a file of that many letters.
func many(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bytes.Repeat([]byte("a"), n), 0o600))
}

// bytes HEX FILE: a file of these bytes.
func rawBytes(ts *testscript.TestScript, _ bool, args []string) {
	b, err := hex.DecodeString(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}

// schema VERSION FILE: the database says that it has that version.
func schemaVersion(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[1]))
	ts.Check(err)
	_, err = db.Exec("PRAGMA user_version = " + args[0])
	ts.Check(errors.Join(err, db.Close()))
}

// oldDatabase FILE: a database as the first released schema has it, with a
// session in it.
func oldDatabase(ts *testscript.TestScript, _ bool, args []string) {
	first, err := os.ReadFile(filepath.Join("..", "..", "internal", "edge", "store", "sqlite", "migrations", "0001_init.sql"))
	ts.Check(err)
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(string(first) + `;
		PRAGMA user_version = 1;
		INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns) VALUES ('agent:main:main', 'main', 0, 1, 1, 1)`)
	ts.Check(errors.Join(err, db.Close()))
}

// damage FILE: all pages of a database but the first are overwritten.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	const page = 4096
	text := []byte(ts.ReadFile(args[0]))
	for i := page; i < len(text); i++ {
		text[i] = byte(i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

// sumtotal FILE TOOLS: the total of a context report is the sum of its sections
// and the number in the file TOOLS.
func sumTotal(ts *testscript.TestScript, _ bool, args []string) {
	tools, err := strconv.ParseInt(strings.TrimSpace(ts.ReadFile(args[1])), 10, 64)
	ts.Check(err)
	sections := at(ts, args[0], "sections").([]any)
	want := element(ts, sections, "sum(tokens)").(int64) + tools
	if got := fmt.Sprint(at(ts, args[0], "total")); got != fmt.Sprint(want) {
		ts.Fatalf("total is %s, want %d", got, want)
	}
}
