package demo

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var (
	researchVerb = regexp.MustCompile(`(?i)\b(?:research|investigate|study|explore|look into|find out about|find out)\b(?:\s+about\b)?`)
	workersPart  = regexp.MustCompile(`(?i)(?:\b(?:with|using|use|by|via|through|spawn|start|launch|have|let|get|in|on)\s+)?(?:the\s+help\s+of\s+)?(?:\b(\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten)\s+)?(?:\b(?:parallel|separate|different|several|some|multiple|your)\s+)*\b(?:workers?|sub-?agents?|helpers?)\b(?:\s+(?:to|each|in parallel|please|for)\b)*`)
	separators   = regexp.MustCompile(`(?i)\s*[,;]\s*(?:and\b|plus\b|&)?\s*|\s+(?:and|plus|versus|vs\.?|as well as)\s+|\s*&\s*`)
	fillerStart  = regexp.MustCompile(`(?i)^(?:(?:please|can you|could you|and|then|the topics?|topics?|about|on|for|both|what is|what are|me)\b[\s:]*|[\s:,.\-–—]+)+`)
	fillerEnd    = regexp.MustCompile(`(?i)(?:[\s:,;.!?\-–—]+|\b(?:please|and|in parallel|at once|for me)\s*)+$`)
	quoted       = regexp.MustCompile("\"[^\"\n]+\"|“[^”\n]+”|«[^»\n]+»|‘[^’\n]+’|`[^`\n]+`|(?:^|[\\s,(])'[^'\n]+'")
)

const (
	maxTopicChars = 120
	maxLabelChars = 32
)

// order is a request to research topics with workers.
type order struct {
	topics []string
	asked  int // workers asked for; 0 if no number was given
}

// parseResearch reads a research order; ok is false for any other text.
func parseResearch(input string) (o order, ok bool) {
	text, kept := shield(strings.Join(strings.Fields(input), " "))
	at := workersPart.FindStringSubmatchIndex(text)
	verb := researchVerb.FindStringIndex(text)
	lead := researchVerb.FindStringIndex(courtesy.ReplaceAllString(text, ""))
	if verb == nil || at == nil && (lead == nil || lead[0] != 0) {
		return order{}, false
	}
	if at != nil {
		if at[2] >= 0 {
			o.asked = number(text[at[2]:at[3]])
		}
		text = text[:at[0]] + " , " + text[at[1]:]
	}
	// What stands before the verb is courtesy, or "with two workers,".
	if verb = researchVerb.FindStringIndex(text); verb == nil {
		return order{}, false
	}
	text = text[verb[1]:]
	seen := map[string]bool{}
	for _, t := range separators.Split(text, -1) {
		t = fillerEnd.ReplaceAllString(fillerStart.ReplaceAllString(t, ""), "")
		t = clip(unquote(unshield(t, kept)), maxTopicChars)
		if key := strings.ToLower(t); t != "" && !seen[key] {
			seen[key] = true
			o.topics = append(o.topics, t)
		}
	}
	return o, true
}

// shield replaces quoted phrases by single private characters, so that "and"
// inside of quotes splits nothing; unshield puts them back.
func shield(text string) (string, []string) {
	var kept []string
	text = quoted.ReplaceAllStringFunc(text, func(q string) string {
		lead := ""
		if r := []rune(q); strings.ContainsRune(" ,(", r[0]) {
			lead, q = string(r[0]), string(r[1:])
		}
		kept = append(kept, q)
		return lead + string(privateUse+rune(len(kept)-1))
	})
	return text, kept
}

func unshield(text string, kept []string) string {
	for i, q := range kept {
		text = strings.ReplaceAll(text, string(privateUse+rune(i)), q)
	}
	return text
}

// privateUse is the first of the supplementary private characters, of which no
// text has a use.
const privateUse = rune(0xF0000)

func number(word string) int {
	words := []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	word = strings.ToLower(word)
	for n, w := range words {
		if n > 0 && word == w {
			return n
		}
	}
	if word == "a" || word == "an" {
		return 1
	}
	return atoi(word)
}

// job is what one worker is asked to do.
type job struct {
	label string
	topic string
}

// jobs shares the topics out: a worker each, or several to one worker when
// fewer workers than topics were asked for.
func (o order) jobs() []job {
	n := len(o.topics)
	if o.asked > 0 && o.asked < n {
		n = o.asked
	}
	var jobs []job
	used := map[string]bool{}
	for i := range n {
		share := o.topics[i*len(o.topics)/n : (i+1)*len(o.topics)/n]
		j := job{topic: list(share)}
		base := "research-" + slug(strings.Join(share, " "))
		j.label = base
		for k := 2; used[j.label]; k++ {
			j.label = fmt.Sprintf("%s-%d", base, k)
		}
		used[j.label] = true
		jobs = append(jobs, j)
	}
	return jobs
}

func slug(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToLower(s) {
		if n == maxLabelChars {
			break
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
			n++
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
			n++
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "topic"
}

const taskPrefix = "Find and summarise what the workspace's files say about: "

// delegate spawns a worker for each job, or reports what became of the spawns.
func (v view) delegate(o order) answer {
	if len(o.topics) == 0 {
		return say("What shall the workers research? Name the topics, as in: research tides and glaciers with two workers.")
	}
	if why := v.missing("sessions_spawn"); why != "" {
		return say("I can't start workers: %s.", why)
	}
	if len(v.rounds) > 0 {
		return spawned(v.rounds[len(v.rounds)-1], o)
	}
	var a answer
	for _, j := range o.jobs() {
		a.calls = append(a.calls, call{"sessions_spawn", map[string]any{"task": taskPrefix + j.topic, "label": j.label}})
	}
	return a
}

// spawned tells which workers were accepted and which were not, and why.
func spawned(round []exchange, o order) answer {
	var started, refused []string
	for _, e := range round {
		label := e.arg("label")
		if why := refusal(e.result); why != "" {
			refused = append(refused, fmt.Sprintf("- %s was not started: %s", label, why))
		} else {
			started = append(started, label)
		}
	}
	if len(started) == 0 {
		return say("I could not start any worker.\n\n%s", strings.Join(refused, "\n"))
	}
	text := fmt.Sprintf("I've started %s: %s. I'll answer when they have reported.", workers(len(started)), list(started))
	if len(refused) > 0 {
		text += "\n\n" + strings.Join(refused, "\n")
	} else if o.asked > len(o.topics) {
		text += fmt.Sprintf(" (You asked for %d; there is nothing for more of them to do.)", o.asked)
	}
	return say("%s", text)
}

func workers(n int) string {
	words := []string{"no workers", "one worker", "two workers", "three workers", "four workers", "five workers"}
	if n < len(words) {
		return words[n]
	}
	return fmt.Sprintf("%d workers", n)
}
