package demo

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	grepLimit    = 200
	filesToRead  = 3
	quotesPerDoc = 6
)

var aboutTask = regexp.MustCompile(`(?is)^(?:find|research|investigate|look|summari[sz]e).*?\babout:?\s+(\S.*)$`)

// work carries out a worker's task.
func (v view) work() answer {
	if m := aboutTask.FindStringSubmatch(v.input); m != nil {
		return v.research(m[1])
	}
	if cmd, ok := parseCommand(v.input); ok {
		return v.perform(cmd)
	}
	if o, ok := parseResearch(v.input); ok && len(o.topics) > 0 {
		return v.research(list(o.topics))
	}
	return v.research(v.input)
}

// research looks a topic up in three steps: list and search the files, read
// the best, answer with quotes.
func (v view) research(topic string) answer {
	topic = clip(strings.TrimRight(oneLine(unquote(topic)), " .!?"), maxTopicChars)
	words := stems(topic)
	if len(words) == 0 {
		return say("The task names nothing that I could look up in the workspace's files.")
	}
	if len(v.rounds) == 0 {
		return v.searchFor(topic, words)
	}
	found := gather(v.rounds[0], newMatcher(words))
	best := found.best(filesToRead)
	if len(v.rounds) == 1 && len(best) > 0 && v.tools["read"] {
		var a answer
		for _, f := range best {
			a.calls = append(a.calls, call{"read", map[string]any{"path": f.path}})
		}
		return a
	}
	if !v.tools["read"] {
		found.notes = append(found.notes, "I could not read whole files: "+v.missing("read")+".")
	}
	return found.answer(topic, best, v.rounds[1:])
}

func (v view) searchFor(topic string, words []string) answer {
	var a answer
	if v.tools["glob"] {
		a.calls = append(a.calls, call{"glob", map[string]any{"pattern": "**/*"}})
	}
	if v.tools["grep"] {
		a.calls = append(a.calls, call{"grep", map[string]any{"pattern": pattern(words), "limit": grepLimit}})
	}
	if len(a.calls) == 0 {
		return say("I can't look for %s: %s.", quote(topic), v.missing("glob", "grep"))
	}
	return a
}

// document is a file that has to do with the topic.
type document struct {
	path  string
	lines []line // as grep found them
	words int    // stems of the topic that occur in them
	named int    // stems that occur in its path
}

func (d document) score() int { return 10*d.words + 4*d.named + min(len(d.lines), 9) }

// findings is what the first step brought.
type findings struct {
	match matcher
	docs  []document
	files int      // files in the workspace, -1 if unknown
	notes []string // what did not work
}

var (
	grepLine  = regexp.MustCompile(`^(.+?):(\d+): ?(.*)$`)
	moreFiles = regexp.MustCompile(`^\[(\d+) more\b`) // glob's note on what it does not show
)

// gather reads the results of glob and grep.
func gather(round []exchange, match matcher) findings {
	found := findings{match: match, files: -1}
	docs := map[string]*document{}
	doc := func(p string) *document {
		if docs[p] == nil {
			docs[p] = &document{path: p, named: match.in(path.Base(p))}
		}
		return docs[p]
	}
	for _, e := range round {
		if e.result.IsError {
			found.notes = append(found.notes, fmt.Sprintf("%s failed: %s.", e.call.Name, clip(strings.TrimRight(oneLine(e.result.Content), "."), 200)))
			continue
		}
		if e.call.Name == "glob" {
			found.files = 0
		}
		for _, l := range strings.Split(e.result.Content, "\n") {
			l = strings.TrimRight(l, "\r")
			switch e.call.Name {
			case "glob":
				p := strings.TrimSpace(l)
				if m := moreFiles.FindStringSubmatch(p); m != nil {
					found.files += atoi(m[1])
				}
				if isFile(p) {
					found.files++
					if match.in(path.Base(p)) > 0 {
						doc(p)
					}
				}
			case "grep":
				if m := grepLine.FindStringSubmatch(l); m != nil && isFile(m[1]) {
					d := doc(m[1])
					d.lines = append(d.lines, line{atoi(m[2]), m[3]})
				}
			}
		}
	}
	for _, d := range docs {
		var all strings.Builder
		for _, l := range d.lines {
			all.WriteString(l.text + "\n")
		}
		d.words = match.in(all.String())
		found.docs = append(found.docs, *d)
	}
	slices.SortFunc(found.docs, func(a, b document) int {
		return cmp.Or(b.score()-a.score(), strings.Compare(a.path, b.path))
	})
	return found
}

// isFile tells a path in a tool's answer from its notes, folders and the
// gateway's own files.
func isFile(p string) bool {
	clean := strings.TrimPrefix(p, "./")
	return p != "" && !strings.HasSuffix(p, "/") && !strings.ContainsAny(p[:1], "[(") &&
		!strings.HasPrefix(strings.ToLower(p), "no ") &&
		!strings.HasPrefix(clean, ".goclaw/") && !strings.HasPrefix(clean, ".git/")
}

// best are the documents worth reading, at most n.
func (f findings) best(n int) []document {
	var picked []document
	for _, d := range f.docs {
		if len(picked) < n && !isBinary(d.path) {
			picked = append(picked, d)
		}
	}
	return picked
}

func isBinary(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".zip", ".gz", ".tar", ".db", ".mp3", ".mp4", ".wav", ".exe", ".so":
		return true
	}
	return false
}

// answer quotes what the documents say, each quote with its path and line.
func (f findings) answer(topic string, docs []document, reads [][]exchange) answer {
	texts := map[string][]line{}
	for _, round := range reads {
		for _, e := range round {
			p := e.arg("path")
			if e.result.IsError {
				f.notes = append(f.notes, fmt.Sprintf("%s could not be read: %s.", p, clip(strings.TrimRight(oneLine(e.result.Content), "."), 200)))
				continue
			}
			texts[p] = readLines(e.result.Content)
		}
	}
	var quotes strings.Builder
	var sources []string
	for _, d := range docs {
		lines := f.choose(texts[d.path])
		if len(lines) == 0 { // unread, or read in part only: what grep saw
			lines = f.choose(d.lines)
		}
		for _, l := range lines {
			fmt.Fprintf(&quotes, "- %s:%d: %s\n", d.path, l.number, quote(f.match.excerpt(l.text)))
		}
		if len(lines) > 0 {
			sources = append(sources, d.path)
		}
	}
	notes := ""
	if len(f.notes) > 0 {
		notes = "\n\n" + strings.Join(f.notes, "\n")
	}
	if len(sources) == 0 {
		return say("Nothing that I could read in the workspace mentions %s; %s.%s", quote(topic), f.extent(), notes)
	}
	more := ""
	if n := len(f.docs) - len(sources); n > 0 {
		more = fmt.Sprintf(" %s may have more to say.", plural(n, "other file", "other files"))
	}
	return say("What the workspace's files say about %s (%s and quote %d):\n\n%s\nSources: %s.\n\nThese are quotes, found by their words; nobody has judged them.%s%s",
		quote(topic), f.extent(), len(sources), quotes.String(), strings.Join(sources, ", "), more, notes)
}

func (f findings) extent() string {
	if f.files < 0 {
		return "I could not list the files"
	}
	return "I looked at " + plural(f.files, "file", "files")
}

// choose picks the lines that match most words of the topic, in their order.
func (f findings) choose(lines []line) []line {
	type hit struct {
		at, words int
	}
	var hits []hit
	for i, l := range lines {
		if n := f.match.in(l.text); n > 0 && l.number > 0 {
			hits = append(hits, hit{i, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.words - a.words })
	if len(hits) > quotesPerDoc {
		hits = hits[:quotesPerDoc]
	}
	slices.SortFunc(hits, func(a, b hit) int { return a.at - b.at })
	chosen := make([]line, len(hits))
	for i, h := range hits {
		chosen[i] = lines[h.at]
	}
	return chosen
}
