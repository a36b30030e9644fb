package recall

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"goclaw"
)

func TestSplit(t *testing.T) {
	long := strings.Repeat("A sentence of some words. ", 80)
	for name, tt := range map[string]struct {
		text string
		want []Chunk
	}{
		"nothing":  {"", nil},
		"blank":    {" \n\n\t\n", nil},
		"a line":   {"one", []Chunk{{Text: "one", Line: 1, EndLine: 1}}},
		"headings": {"# A\n\n## B\r\none\n\ntwo\n# C\n\n## D\nthree\n", []Chunk{{Title: "A > B", Text: "one\n\ntwo", Line: 4, EndLine: 6}, {Title: "C > D", Text: "three", Line: 10, EndLine: 10}}},
		"a heading alone": {"# A\n\ntext\n\n## Call Ann\n\n## Call Bob ##", []Chunk{
			{Title: "A", Text: "text", Line: 3, EndLine: 3}, {Title: "A", Text: "Call Ann", Line: 5, EndLine: 5}, {Title: "A", Text: "Call Bob", Line: 7, EndLine: 7}}},
		"a mark":     {"<!-- run 7 -->\nthe port\n\n<!-- run 8 -->\nand more", []Chunk{{Text: "the port\n\nand more", Line: 2, EndLine: 5}}},
		"code":       {"```\n# no heading\n\n- no item\n```\nafter", []Chunk{{Text: "```\n# no heading\n\n- no item\n```\nafter", Line: 1, EndLine: 6}}},
		"not ended":  {"~~~\n# code", []Chunk{{Text: "~~~\n# code", Line: 1, EndLine: 2}}},
		"no heading": {"#tag\n#######x", []Chunk{{Text: "#tag\n#######x", Line: 1, EndLine: 2}}},
	} {
		got := Split(tt.text)
		for i := range got {
			if got[i].ID == "" {
				t.Errorf("%s: no id", name)
			}
			got[i].ID = ""
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	items := strings.Repeat("- an item with a few words in it\n", 60)
	if got := Split(items); len(got) < 3 || got[1].Line != got[0].EndLine+1 || !strings.HasPrefix(got[1].Text, "- an item") {
		t.Errorf("a long list: %+v", got)
	}
	for _, c := range Split(long) {
		if c.Line != 1 || c.EndLine != 1 || !strings.HasSuffix(c.Text, ".") {
			t.Errorf("a long line: %+v", c)
		}
	}
	if a, b := Split("# A\nx\n# B\nx"), Split("intro\n\n# A\nx"); a[0].ID != b[1].ID || a[0].ID == a[1].ID {
		t.Error("an id must go by title and text alone")
	}
}

// Whatever the text, no word is lost, no chunk is too large, and its lines are
// where it stands.
func TestSplitKeepsAll(t *testing.T) {
	word := rapid.SampledFrom([]string{"alpha", "Bärlauch", "#", "##", "- x", "1. y", "```", "", "", "\u4e1c\u4eac", strings.Repeat("long ", 300), "\xff\xfe", "<!-- c -->"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(word, 0, 40).Draw(t, "lines")
		text := strings.Join(lines, "\n")
		var all strings.Builder
		last := 0
		for _, c := range Split(text) {
			if len(c.Text) > mostChunk || c.Line < 1 || c.EndLine < c.Line || c.EndLine > len(lines) || c.Line < last {
				t.Fatalf("%+v", c)
			}
			last = c.Line
			all.WriteString(c.Title + " " + c.Text + "\n")
		}
		for _, w := range []string{"alpha", "Bärlauch", "\u4e1c\u4eac"} {
			if strings.Contains(text, w) && !strings.Contains(all.String(), w) {
				t.Fatalf("%s is lost of %q", w, text)
			}
		}
	})
}

func TestTerms(t *testing.T) {
	s := NewStemmer()
	for text, want := range map[string]string{
		"Running runners ran":              "run runner ran",
		"Müller's Straße, CAFÉ":            "muller strass cafe",
		"don't Ann’s O'Brien":              "dont ann obrien",
		"parseConfig v2":                   "parseconfig pars config v2",
		"Łódź Søren ﬁne":                   "lodz soren fine",
		"port 8080, 12:30, 3.14":           "port 8080 12 30 3 14",
		"\u6771\u4eac\u90fd":               "\u6771\u4eac \u4eac\u90fd",
		"a_b-c/d":                          "a b c d",
		"party 🎉🎉 © ✅":                     "parti 🎉 🎉 ✅",
		"\xff\xfe \x00 !?":                 "",
		strings.Repeat("x", 100) + " kept": "kept",
	} {
		if got := strings.Join(s.Terms(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzAsk(f *testing.F) {
	for _, seed := range []string{"who fixed the heater?", `"a phrase" and more`, "2 weeks ago", "last may", "\xff", "“unclosed", "9999-99-99"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := NewStemmer()
		q := s.Ask(text, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), DefaultWeights())
		for _, c := range q.Concepts {
			if c.Term == "" || c.Weight <= 0 {
				t.Errorf("%q: %+v", text, c)
			}
		}
		snippet, first, last := s.Snippet(q, text)
		if utf8.ValidString(text) && !utf8.ValidString(snippet) || first > last || last > strings.Count(text, "\n") {
			t.Errorf("%q: %q, %d to %d", text, snippet, first, last)
		}
		Split(text)
	})
}

func TestDates(t *testing.T) {
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC) // a Saturday
	for text, want := range map[string]string{
		"what did we say":             "",
		"notes of 2026-10-03":         "2026-10-03 2026-10-04",
		"in 2026-10":                  "2026-10-01 2026-11-01",
		"yesterday evening":           "2026-11-20 2026-11-21",
		"the day before yesterday":    "2026-11-19 2026-11-20",
		"gestern":                     "2026-11-20 2026-11-21",
		"3 days ago":                  "2026-11-18 2026-11-19",
		"two weeks ago":               "2026-11-04 2026-11-11",
		"this week":                   "2026-11-16 2026-11-22",
		"last week":                   "2026-11-09 2026-11-22",
		"on Friday":                   "2026-11-20 2026-11-21",
		"last saturday":               "2026-11-14 2026-11-15",
		"in March":                    "2026-03-01 2026-04-01",
		"last December":               "2025-12-01 2026-01-01",
		"in May 2024":                 "2024-05-01 2024-06-01",
		"this month":                  "2026-11-01 2026-11-22",
		"last year":                   "2025-01-01 2026-01-01",
		"it may rain on 2026-99-99":   "",
		"we marched in the afternoon": "",
	} {
		_, span := dates(text, now)
		got := ""
		if !span.IsZero() {
			got = span.From.Time().Format(time.DateOnly) + " " + span.Until.Time().Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if q := NewStemmer().Ask("what did Ann say yesterday", now, DefaultWeights()); len(q.Concepts) != 1 || q.Concepts[0].Term != "ann" || q.Concepts[0].Weight <= 1 {
		t.Errorf("%+v", q.Concepts)
	}
	if q := NewStemmer().Ask("yesterday", time.Time{}, DefaultWeights()); !q.Span.IsZero() || len(q.Concepts) != 1 {
		t.Errorf("without a clock: %+v", q)
	}
}

func TestAlike(t *testing.T) {
	words := []string{"boiler", "broiler", "spoiler", "boil", "mueller", "meller", "kitchen"}
	for term, want := range map[string]string{"boilre": "boiler", "boilr": "boil,boiler", "bolier": "boiler", "kitcen": "kitchen", "kitxyen": "", "mueler": "mueller"} {
		if got := strings.Join(Alike(term, words), ","); got != want {
			t.Errorf("%s: %s, want %s", term, got, want)
		}
	}
	for term, want := range map[string]bool{"boiler": true, "key": false, "8080": false, "v2beta": false} {
		if Mendable(term) != want {
			t.Errorf("%s: %v", term, !want)
		}
	}
}

func TestJoined(t *testing.T) {
	words := []string{"haus", "haustur", "haustur'schlussel", "hausturschlussel", "hausturschlusselbund", "schlussel", "tur", "ur", "garten"}
	for term, want := range map[string]string{
		"schlussel":        "hausturschlussel,haustur'schlussel,hausturschlusselbund",
		"hausturschlussel": "hausturschlusselbund,schlussel,haustur,haus",
		"haus":             "haustur,hausturschlussel,haustur'schlussel,hausturschlusselbund",
		"tur":              "",
		"garten":           "",
	} {
		if got := strings.Join(Joined(term, words), ","); got != want {
			t.Errorf("%s: %s, want %s", term, got, want)
		}
	}
	for term, want := range map[string]bool{"schlussel": true, "rauchmeld": true, "hous": false, "boat": false, "tur": false, "8841": false, "東京": false, "🎉🎉🎉🎉": false} {
		if Joinable(term) != want {
			t.Errorf("%s: %v", term, !want)
		}
	}
}

// chunk is one as an index gives it.
func chunk(path, title, text string, at goclaw.Millis) goclaw.MemoryChunk {
	s := NewStemmer()
	return goclaw.MemoryChunk{ID: path, Path: path, Title: title, Text: text, At: at, Terms: strings.Join(s.Terms(text), " "), TitleTerms: strings.Join(s.Terms(title), " ")}
}

func rankPaths(question string, now goclaw.Millis, chunks ...goclaw.MemoryChunk) string {
	w := DefaultWeights()
	stats := Stats{Chunks: 100, Has: map[string]int{}}
	for _, c := range chunks {
		terms := strings.Fields(c.Terms + " " + c.TitleTerms)
		stats.Terms += len(terms)
		slices.Sort(terms)
		for _, t := range slices.Compact(terms) {
			stats.Has[t]++
		}
	}
	stats.Chunks, stats.Terms = 100, stats.Terms*100/len(chunks)
	var paths []string
	for _, r := range Rank(NewStemmer().Ask(question, time.Time{}, w), chunks, stats, w, now) {
		paths = append(paths, r.Path)
	}
	return strings.Join(paths, " ")
}

func TestRank(t *testing.T) {
	for name, tt := range map[string]struct {
		question string
		chunks   []goclaw.MemoryChunk
		want     string
	}{
		"the word before its kin":     {"physician", []goclaw.MemoryChunk{chunk("kin", "", "the doctor came", 0), chunk("word", "", "the physician came", 0), chunk("none", "", "nobody came", 0)}, "word kin"},
		"both words before one":       {"green boat", []goclaw.MemoryChunk{chunk("one", "", "boat boat boat", 0), chunk("both", "", "a green boat", 0)}, "both one"},
		"the heading counts":          {"boat", []goclaw.MemoryChunk{chunk("text", "", "the boat and the long winter of rest", 0), chunk("title", "Boat", "the long winter of rest and sleep", 0)}, "title text"},
		"a phrase that was asked for": {`"the green boat"`, []goclaw.MemoryChunk{chunk("apart", "", "green was the sea and the boat", 0), chunk("phrase", "", "sea and the green boat was", 0)}, "phrase apart"},
		"the newer of equals":         {"boat", []goclaw.MemoryChunk{chunk("old", "", "boat", 1), chunk("new", "", "boat", 2)}, "new old"},
	} {
		if got := rankPaths(tt.question, 0, tt.chunks...); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	const day = 24 * 3600 * 1000
	if got := rankPaths("boat", 1000*day, chunk("old", "", "boat sails", 1*day), chunk("new", "", "boat sails", 999*day)); got != "new old" {
		t.Error(got)
	}
}

func TestHeld(t *testing.T) {
	stats := Stats{Chunks: 100, Has: map[string]int{"boat": 1, "green": 1, "common": 99}}
	ranked := func(texts ...string) (all []Ranked) {
		for _, text := range texts {
			all = append(all, Ranked{chunk("p", "", text, 0), 1})
		}
		return all
	}
	for _, tt := range []struct {
		question  string
		best      []Ranked
		from, til float64
	}{
		{"green boat", ranked("a boat", "the green boat"), 1, 1},
		{"green boat", ranked("a boat", "green"), 0.5, 0.5},
		{"green boat common", ranked("green boat"), 0.99, 0.9999},
		{"green boat", ranked("ship"), 0, 0},
		{"green boat", nil, 0, 0},
		{"", ranked("ship"), 0, 0},
	} {
		q := NewStemmer().Ask(tt.question, time.Time{}, DefaultWeights())
		if got := Held(q, tt.best, stats); got < tt.from || got > tt.til {
			t.Errorf("%q: %g", tt.question, got)
		}
	}
}

func TestFuse(t *testing.T) {
	at := func(path string, when goclaw.Millis) Ranked { return Ranked{chunk(path, "", path, when), 1} }
	w := DefaultWeights()
	got := Fuse(Question{}, w, List{[]Ranked{at("a", 5), at("b", 15), at("c", 25)}, 1}, List{[]Ranked{at("b", 15), at("d", 35)}, 1})
	var paths []string
	for _, r := range got {
		paths = append(paths, r.Path)
		if r.Score <= 0 || r.Score > 1 {
			t.Errorf("%s: %g", r.Path, r.Score)
		}
	}
	if !slices.Equal(paths, []string{"b", "a", "d", "c"}) {
		t.Errorf("%q", paths)
	}
	got = Fuse(Question{Span: Span{20, 30}}, w, List{[]Ranked{at("a", 5), at("b", 15), at("c", 25)}, 1})
	if got[0].Path != "c" {
		t.Errorf("%+v", got)
	}
}

func TestSnippet(t *testing.T) {
	s := NewStemmer()
	q := s.Ask("walnut tree", time.Time{}, DefaultWeights())
	text := strings.Repeat("Nothing is said here at all.\n", 20) + "The walnut tree was cut back.\n" + strings.Repeat("Nor is it here.\n", 30)
	got, first, last := s.Snippet(q, text)
	if !strings.Contains(got, "The walnut tree was cut back.") || len(got) > snippetBytes+200 || first > 20 || last < 20 || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d to %d: %q", first, last, got)
	}
	if got, first, last := s.Snippet(q, "short\ntext"); got != "short\ntext" || first != 0 || last != 1 {
		t.Errorf("%q %d %d", got, first, last)
	}
}

// The built-in vectors and the thesaurus know what is near to what.
func TestSense(t *testing.T) {
	s := NewStemmer()
	sense := func(text string) []float32 { return Sense(s.Terms(text)) }
	like := func(a, b string) (sum float64) {
		x, y := sense(a), sense(b)
		for i := range x {
			sum += float64(x[i]) * float64(y[i])
		}
		return sum
	}
	for _, tt := range [][3]string{
		{"the doctor treats a patient", "hospital nurse", "kitchen stove"},
		{"cook dinner in the oven", "bake bread", "court judge"},
		{"boat on the sea", "a sailor steers a ship", "a piano sonata"},
	} {
		if near, far := like(tt[0], tt[1]), like(tt[0], tt[2]); near < far+0.1 {
			t.Errorf("%q is %.2f like %q and %.2f like %q", tt[0], near, tt[1], far, tt[2])
		}
	}
	if got := sense("qqqq 8080 \u6771\u4eac"); got != nil {
		t.Errorf("of words that nobody knows: %v", got)
	}
	for stem, want := range map[string]string{"repair": "mend", "physician": "doctor", "boss": "chief"} {
		if !slices.Contains(related(stem), want) {
			t.Errorf("%s: %q", stem, related(stem))
		}
	}
	for _, stem := range []string{"", "zzzz", "\n", "\t", "aaaa"} {
		if got := related(stem); got != nil {
			t.Errorf("%q: %q", stem, got)
		}
	}
	lines := strings.Split(strings.TrimSuffix(thesaurus, "\n"), "\n")
	if len(lines) < 5000 || !slices.IsSorted(lines) {
		t.Errorf("%d lines, sorted: %v", len(lines), slices.IsSorted(lines))
	}
	for _, line := range []string{lines[0], lines[1], lines[len(lines)/2], lines[len(lines)-1]} {
		head, rest, _ := strings.Cut(line, "\t")
		if got := strings.Join(related(head), " "); got != rest {
			t.Errorf("%s: %s, want %s", head, got, rest)
		}
	}
}

func TestTurn(t *testing.T) {
	say := func(text string) goclaw.Event {
		return goclaw.Event{Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, text)}}
	}
	ask := func(text string) goclaw.Event {
		return goclaw.Event{Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, "<turn_context>\nx\n</turn_context>\n\n"+text)}}
	}
	secret := goclaw.Event{Result: &goclaw.ToolResult{Content: "what a tool returned"}}
	for name, tt := range map[string]struct {
		trigger goclaw.Trigger
		events  []goclaw.Event
		want    string
	}{
		"a turn":                  {goclaw.TriggerUser, []goclaw.Event{ask("hi"), say("let me look"), secret, say("hello")}, "User: hi\n\nAssistant: let me look\n\nAssistant: hello"},
		"an announcement":         {goclaw.TriggerAnnouncement, []goclaw.Event{ask("[Subagent: x] Complete."), say("done")}, "Workers: [Subagent: x] Complete.\n\nAssistant: done"},
		"a silent heartbeat":      {goclaw.TriggerHeartbeat, []goclaw.Event{ask("look"), say("NO_REPLY")}, ""},
		"a heartbeat":             {goclaw.TriggerHeartbeat, []goclaw.Event{ask("look"), say("it rains")}, "Assistant: it rains"},
		"one that was given back": {goclaw.TriggerAnnouncement, []goclaw.Event{ask("x"), {End: &goclaw.EndEvent{Returned: true}}}, ""},
	} {
		if got := TurnText(goclaw.Run{Trigger: tt.trigger}, tt.events); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	run := goclaw.Run{ID: "r1", Session: goclaw.APIKey("main", "a:b#c")}
	if key, id, ok := ParseTurnPath(TurnPath(run)); !ok || key != run.Session || id != "r1" {
		t.Errorf("%s %s %v", key, id, ok)
	}
	for _, path := range []string{"", "session:", "session:#", "session:agent:main:main", "session:agent:main:main#", "memory/a#b", "session:x#y"} {
		if _, _, ok := ParseTurnPath(path); ok {
			t.Errorf("%q is no turn's path", path)
		}
	}
}
