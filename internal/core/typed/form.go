package typed

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
)

//go:embed words
var words embed.FS

// word is a text of the folder words, with its placeholders filled.
func word(name string, fill ...string) string {
	raw, err := words.ReadFile("words/" + name + ".md")
	if err != nil {
		panic(err) // the names are constants
	}
	return strings.NewReplacer(fill...).Replace(strings.TrimSpace(string(raw)))
}

// Instructions tells a worker which form its answer must have. It is "" if
// there is nothing to tell.
func Instructions(o definition.Output, findings bool) string {
	var parts []string
	switch o.Format {
	case formatJSON:
		if form := shown(o, findings); len(form) > 0 {
			parts = append(parts, word("jsonschema", "{{schema}}", string(form)))
		} else {
			parts = append(parts, word("json"))
		}
	case formatXML:
		parts = append(parts, word("xml", "{{tag}}", o.Tag))
	}
	switch {
	case !findings:
	case o.Format == formatJSON && Keyed(o.Schema):
		parts = append(parts, word("keyed"))
	default:
		parts = append(parts, word("block"))
	}
	return strings.Join(parts, "\n\n")
}

// ReplySchema is what ModelRequest.Schema asks for, nil where no schema
// describes the whole reply: that of the answer, with its findings.
func ReplySchema(o definition.Output, findings bool) json.RawMessage {
	if o.Format != formatJSON || len(o.Schema) == 0 || findings && !Keyed(o.Schema) {
		return nil
	}
	return shown(o, findings)
}

// findingsSchema describes the key findings.
const findingsSchema = `{"type":"array","items":{"type":"object","additionalProperties":false,"required":["claim","evidence","confidence"],` +
	`"properties":{"claim":{"type":"string"},"evidence":{"type":"string"},"confidence":{"type":"number"}}}}`

// shown is the schema with the key findings added, if it may have it.
func shown(o definition.Output, findings bool) json.RawMessage {
	if !findings || len(o.Schema) == 0 || !Keyed(o.Schema) {
		return compact(o.Schema)
	}
	var s, properties map[string]json.RawMessage
	var required []string
	// Keyed has read all three.
	_ = json.Unmarshal(o.Schema, &s)
	_ = json.Unmarshal(s["properties"], &properties)
	_ = json.Unmarshal(s["required"], &required)
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	properties[findingsKey] = json.RawMessage(findingsSchema)
	var err, failed error
	s["properties"], err = canonical(properties)
	s["required"], failed = canonical(append(slices.Clone(required), findingsKey))
	raw, last := canonical(s)
	if errors.Join(err, failed, last) != nil {
		return compact(o.Schema)
	}
	return raw
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// maxProblem bounds one problem in a repair, in bytes.
const maxProblem = 400

// Repair is the message that goes back to the model after an answer that Parse
// refused with err: the first problems, and the form that is wanted.
func Repair(o definition.Output, err error) goclaw.Message {
	problems := []string{"the answer could not be read"}
	findings := false
	var v *Violation
	switch {
	case errors.As(err, &v):
		problems, findings = v.Problems, v.Findings
	case err != nil:
		problems = []string{err.Error()}
	}
	list := make([]string, 0, maxTold)
	for _, p := range problems[:min(len(problems), maxTold)] {
		list = append(list, "- "+clip(strings.Join(strings.Fields(p), " "), maxProblem))
	}
	return goclaw.Text(goclaw.RoleUser, word("repair", "{{problems}}", strings.Join(list, "\n"), "{{form}}", Instructions(o, findings)))
}

// clip cuts s after n bytes, at a character's end.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
