package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// times are a process's processor times, to 10 ms.
type times struct {
	parent int           // its process
	own    time.Duration // of itself
	ended  time.Duration // of its children that have ended
}

// workedBy reads /proc; where that is not possible all is 0.
func workedBy(pid int) times {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times{}
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	const parent, user, system, children, tick = 1, 11, 12, 14, 10 * time.Millisecond
	if len(fields) <= children {
		return times{}
	}
	numbers := make([]int, children+1)
	for i := parent; i <= children; i++ {
		if numbers[i], err = strconv.Atoi(fields[i]); err != nil && i != parent {
			numbers[i] = 0 // an unsigned field that we don't use
		}
	}
	return times{
		parent: numbers[parent],
		own:    time.Duration(numbers[user]+numbers[system]) * tick,
		ended:  time.Duration(numbers[system+1]+numbers[children]) * tick,
	}
}

// workedBelow is the processor time of a process and of all its children, those
// that have ended too.
func workedBelow(pid int) time.Duration {
	t := workedBy(pid)
	sum := t.own + t.ended
	others, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return sum
	}
	for _, other := range others {
		child, err := strconv.Atoi(filepath.Base(other))
		if err != nil {
			continue
		}
		if t := workedBy(child); t.parent == pid {
			sum += t.own
		}
	}
	return sum
}

// share is how much of the machine's processors d was within wall, in percent.
func share(label string, d, wall time.Duration) Value {
	all := wall * time.Duration(runtime.NumCPU())
	return count(label, 100*float64(d)/float64(max(all, 1)), "%")
}
