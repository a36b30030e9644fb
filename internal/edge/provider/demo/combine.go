package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"goclaw"
)

// report is one worker's announcement.
type report struct {
	label  string
	status string // complete, failed, timed out, cancelled
	why    string // what follows the status of one that did not complete
	body   string // its result, without the line of statistics
}

var (
	reportHead = regexp.MustCompile(`(?i)^\[(?:Subagent|Cron): (.+?)\] (Complete|Failed|Timed out|Cancelled)\b[.:]?\s*(.*)$`)
	statistics = regexp.MustCompile(`^\(?.*\d.*·.*agent:[^ ]+\)?$`)
	citation   = regexp.MustCompile(`(?m)^\s*[-*]\s+(\S[^\n:]*?):(\d+): `)
	sourceLine = regexp.MustCompile(`(?m)^Sources: (.+?)\.?$`)
)

// parseReports reads the announcements in text; none means that it is no
// announcement.
func parseReports(text string) []report {
	var reports []report
	var body []string
	end := func() {
		if len(reports) > 0 {
			reports[len(reports)-1].body = resultOf(body)
		}
		body = nil
	}
	for _, l := range strings.Split(text, "\n") {
		if m := reportHead.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			end()
			reports = append(reports, report{label: m[1], status: strings.ToLower(m[2]), why: strings.TrimSpace(m[3])})
			continue
		}
		body = append(body, l)
	}
	end()
	return reports
}

// resultOf cuts the result at its line of statistics: what follows is the
// gateway's.
func resultOf(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if statistics.MatchString(strings.TrimSpace(lines[i])) {
			lines = lines[:i]
			break
		}
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	text = strings.TrimSpace(strings.TrimPrefix(text, "Partial result:"))
	return strings.TrimSpace(strings.TrimPrefix(text, strings.TrimSpace(Label)))
}

// sources lists the files that a report cites, each once.
func (r report) sources() []string {
	var files []string
	add := func(f string) {
		if f = strings.TrimSpace(f); f != "" && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	for _, m := range citation.FindAllStringSubmatch(r.body, -1) {
		add(m[1])
	}
	for _, m := range sourceLine.FindAllStringSubmatch(r.body, -1) {
		for f := range strings.SplitSeq(m[1], ", ") {
			add(f)
		}
	}
	return files
}

const maxReportChars = 4000

// combine tells the person what the workers found, what they have in common
// and what went wrong.
func (v view) combine(reports []report) answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", opening(reports))
	for _, r := range reports {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", r.label, r.status)
		switch {
		case r.status != "complete" && r.body != "":
			fmt.Fprintf(&b, "What it had found before:\n\n%s\n", clipBlock(r.body, maxReportChars))
		case r.status != "complete":
			b.WriteString("It left no result.\n")
		case r.body == "":
			b.WriteString("It returned no text.\n")
		default:
			b.WriteString(clipBlock(r.body, maxReportChars) + "\n")
		}
	}
	if len(reports) > 1 {
		b.WriteString("\n## In common\n\n" + overlap(reports))
	}
	if failed := failures(reports); failed != "" {
		b.WriteString("\n## What went wrong\n\n" + failed)
	}
	if open := v.waitingFor(); len(open) > 0 {
		fmt.Fprintf(&b, "\nStill at work: %s.\n", list(open))
	}
	return say("%s", strings.TrimSpace(b.String()))
}

func opening(reports []report) string {
	complete := 0
	for _, r := range reports {
		if r.status == "complete" {
			complete++
		}
	}
	switch n := len(reports); {
	case n == 1 && complete == 1:
		return "The worker " + reports[0].label + " has reported"
	case n == 1:
		return "The worker " + reports[0].label + " did not complete its task"
	case complete == n && n == 2:
		return "Both workers have reported"
	case complete == n:
		return fmt.Sprintf("All %d workers have reported", n)
	default:
		return fmt.Sprintf("%d of %d workers have completed their task", complete, n)
	}
}

func overlap(reports []report) string {
	citedBy := map[string][]string{}
	var files []string
	for _, r := range reports {
		for _, f := range r.sources() {
			if len(citedBy[f]) == 0 {
				files = append(files, f)
			}
			citedBy[f] = append(citedBy[f], r.label)
		}
	}
	var b strings.Builder
	for _, f := range files {
		if len(citedBy[f]) > 1 {
			fmt.Fprintf(&b, "- %s is cited by %s.\n", f, list(citedBy[f]))
		}
	}
	if b.Len() == 0 {
		return "No file is cited by more than one of them.\n"
	}
	return b.String()
}

func failures(reports []report) string {
	var b strings.Builder
	for _, r := range reports {
		if r.status == "complete" {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s", r.label, r.status)
		if r.why != "" {
			b.WriteString(": " + strings.TrimRight(r.why, "."))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// waitingFor lists the workers that were accepted in this conversation and
// have not been announced in it.
func (v view) waitingFor() []string {
	var open []string
	for _, round := range roundsOf(v.messages) {
		for _, e := range round {
			if e.call.Name == "sessions_spawn" && refusal(e.result) == "" {
				open = append(open, e.arg("label"))
			}
		}
	}
	for _, m := range v.messages {
		if m.Role != goclaw.RoleUser {
			continue
		}
		for _, r := range parseReports(saidBy(m)) {
			if i := slices.Index(open, r.label); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	return open
}
