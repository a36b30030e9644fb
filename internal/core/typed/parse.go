package typed

import (
	"encoding/json"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
)

// The formats of definition.Output. An output without a format is plain text.
const (
	formatJSON = "json"
	formatXML  = "xml"
)

// Answer is what a reply comes to.
type Answer struct {
	Result   string          // canonical JSON, the root element with its tags, or plain text
	JSON     json.RawMessage // of the format json, the same as Result; else nil
	Findings []Finding       // not nil if they were asked for
	Dropped  int             // bytes of the reply that are neither answer nor findings
}

// Violation is what keeps a reply from being an answer.
type Violation struct {
	Problems []string // one line each, never none
	Findings bool     // findings were asked for
}

// Error says it in one line.
func (v *Violation) Error() string {
	return "the answer does not have the form that was asked for: " + few(v.Problems)
}

// Parse finds the answer in a reply that stopped for that reason, checks it,
// and takes the findings out if they were asked for. What is wrong is a
// *Violation. With the zero Output the answer is the text without findings.
func Parse(o definition.Output, findings bool, reply string, stop goclaw.StopReason) (Answer, error) {
	var a Answer
	var problems []string
	switch {
	case stop == goclaw.StopMaxTokens:
		problems = []string{"the reply was cut off at the limit of tokens, before its end"}
	case stop == goclaw.StopRefusal:
		problems = []string{"the reply was broken off by a refusal"}
	case o.Format == formatJSON:
		a, problems = parseJSON(o, findings, reply)
	case o.Format == formatXML:
		a, problems = parseXML(o, findings, reply, stop)
	default:
		a, problems = parseText(findings, reply)
	}
	if len(problems) > 0 {
		return Answer{}, &Violation{Problems: problems, Findings: findings}
	}
	return a, nil
}

func parseText(findings bool, reply string) (Answer, []string) {
	if !findings {
		return Answer{Result: strings.TrimSpace(reply)}, nil
	}
	found, rest, problems := findingsOf([]string{reply})
	return Answer{Result: strings.TrimSpace(strings.Join(rest, "")), Findings: found}, problems
}

func parseXML(o definition.Output, findings bool, reply string, stop goclaw.StopReason) (Answer, []string) {
	found := root(reply, o.Tag, findings)
	at, closed := found.last()
	cut, open := completed(o, reply, found, stop)
	if open {
		at = cut
	}
	var a Answer
	var problems []string
	outside := []string{reply}
	if closed || open {
		a.Result = reply[at.start:at.end]
		outside = []string{reply[:at.start], reply[at.end:]}
	} else {
		problems = append(problems, none(o.Tag, len(found.open)))
	}
	if open {
		a.Result += "</" + o.Tag + ">"
	}
	if findings {
		var wrong []string
		a.Findings, outside, wrong = findingsOf(outside)
		problems = append(problems, wrong...)
	}
	a.Dropped = weigh(outside)
	return a, problems
}

// weigh counts the bytes of texts without the white space at their edges.
func weigh(texts []string) int {
	n := 0
	for _, t := range texts {
		n += len(strings.TrimSpace(t))
	}
	return n
}

// none words that there is no element, and why if that can be seen.
func none(tag string, open int) string {
	what := fmt.Sprintf("there is no complete <%s>…</%s> in the reply", tag, tag)
	if open > 0 {
		what += fmt.Sprintf(": <%s> is opened, and never closed", tag)
	}
	return what
}
