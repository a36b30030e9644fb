package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	startAim = 29.0 // ms
	idleAim  = 32.0 // MB
)

// start measures cold starts, and the memory of a gateway that nobody uses.
func (b *bench) start(ctx context.Context) ([]Figure, error) {
	home, err := b.newHome("")
	if err != nil {
		return nil, err
	}
	var fresh, again, said sample
	for i := range b.size.starts + 1 {
		empty, err := b.newHome("")
		if err != nil {
			return nil, err
		}
		for _, at := range []struct {
			home string
			into *sample
		}{{empty, &fresh}, {home, &again}} {
			g, err := b.gatewayOn(ctx, at.home)
			if err != nil {
				return nil, err
			}
			g.stop()
			if i == 0 {
				continue // the first one reads the binary from the disk, or makes the home
			}
			*at.into = append(*at.into, g.ready)
			if at.home == home {
				said = append(said, g.said)
			}
		}
	}
	how := fmt.Sprintf("%d starts of this binary as `gateway --addr 127.0.0.1:0`, from before fork until GET /readyz has answered 200; the binary is in the page cache.", b.size.starts)
	figures := []Figure{{
		ID: "start.existing", Name: "Cold start, existing home", Values: append(again.spread(), ms("ready line", said.median())),
		Means:     "How long a person, or a supervisor after a crash, waits for a gateway whose home is laid out already.",
		How:       how,
		Aim:       &Aim{Label: "median", Bound: startAim, Words: "≤ 24–29 ms"},
		Elsewhere: elsewhere("picoclaw 24–29 ms, OpenClaw 9 s"),
	}, {
		ID: "start.fresh", Name: "Cold start, fresh home", Values: fresh.spread(),
		Means: "The first start of all: it also makes the database with its schema, the token and the workspace with its eight files.",
		How:   how,
	}}
	idle, err := b.idle(ctx, home)
	return append(figures, idle...), err
}

func (b *bench) idle(ctx context.Context, home string) ([]Figure, error) {
	f := Figure{
		ID: "idle", Name: "Idle memory",
		Means: "What a gateway that waits holds of the machine's memory. Anonymous memory is the program's own; the rest is pages of the " +
			"binary and of files, which the kernel drops when memory is short and shares between processes.",
		How:       fmt.Sprintf("VmRSS, RssAnon and RssFile of /proc/PID/status, %s after the start on an existing home. 1 MB is 10^6 bytes.", b.size.settle),
		Aim:       &Aim{Label: "RSS", Bound: idleAim, Words: "< 32 MB"},
		Elsewhere: elsewhere("picoclaw 32 MB, OpenClaw 800 MB"),
	}
	g, err := b.gatewayOn(ctx, home)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	m, err := b.memoryOf(ctx, g.process)
	if errors.Is(err, errNoProc) {
		f.Missing = err.Error()
		return []Figure{f}, nil
	}
	f.Values = m.values()
	return []Figure{f}, err
}

// initLine is a line of GODEBUG=inittrace=1, such as
// init net/http @6.7 ms, 0.058 ms clock, 4712 bytes, 49 allocs.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes`)

// cost is what initialising one package takes.
type cost struct {
	name  string
	took  time.Duration
	bytes int
}

// initialisation measures what the program does before main.
func (b *bench) initialisation(ctx context.Context) ([]Figure, error) {
	info, err := os.Stat(b.o.Program)
	if err != nil {
		return nil, err
	}
	took := map[string]sample{}
	sums := sample{}
	bytesOf := map[string]int{}
	for range b.size.starts {
		costs, err := b.initTrace(ctx)
		if err != nil {
			return nil, err
		}
		var sum time.Duration
		for _, c := range costs {
			took[c.name] = append(took[c.name], c.took)
			bytesOf[c.name] = c.bytes
			sum += c.took
		}
		sums = append(sums, sum)
	}
	var all []cost
	held := 0
	for name, s := range took {
		all = append(all, cost{name, s.median(), bytesOf[name]})
		held += bytesOf[name]
	}
	slices.SortFunc(all, func(a, b cost) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.name, b.name)) })
	top := Figure{
		ID: "init.packages", Name: "The ten dearest packages",
		Means: "Which packages' initialisation every start of goclaw pays for.", How: "As above, the medians of the packages.",
	}
	for _, c := range all[:min(10, len(all))] {
		top.Values = append(top.Values, ms(c.name, c.took))
	}
	return []Figure{{
		ID: "binary", Name: "Binary", Values: []Value{count("", float64(info.Size())/1e6, "MB")},
		Means: "The size of the one file that goclaw is.",
		How:   "The size of the running executable. Release builds use CGO_ENABLED=0 -trimpath -ldflags \"-s -w\"; `go run` keeps the symbols, which makes the file larger and neither slower nor fatter in memory.",
	}, {
		ID: "init", Name: "Initialisation before main", Values: []Value{ms("median", sums.median()), count("", float64(len(all)), "packages"), count("allocated", float64(held)/1e6, "MB")},
		Means: "The share of every start, also of `goclaw version`, that goes to initialising packages.",
		How:   fmt.Sprintf("GODEBUG=inittrace=1 goclaw version, %d times: the sum over all packages.", b.size.starts),
	}, top}, nil
}

func (b *bench) initTrace(ctx context.Context) ([]cost, error) {
	var trace bytes.Buffer
	cmd := exec.CommandContext(ctx, b.o.Program, "version")
	cmd.Env = append(cleanEnv(b.o.Env), "GODEBUG=inittrace=1", "GOCLAW_HOME="+b.dir)
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("goclaw version: %w: %s", err, last(trace.String()))
	}
	var costs []cost
	for _, m := range initLine.FindAllStringSubmatch(trace.String(), -1) {
		took, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("inittrace line %q: %w", m[0], err)
		}
		size, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, fmt.Errorf("inittrace line %q: %w", m[0], err)
		}
		costs = append(costs, cost{strings.TrimSuffix(m[1], ","), time.Duration(took * float64(time.Millisecond)), size})
	}
	return costs, nil
}
