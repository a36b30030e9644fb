package slices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
)

// Want is what to read. Exactly one of File and Glob is set; both are relative
// to the workspace, with slashes.
type Want struct {
	Name     string // of the slice, for errors
	File     string
	Glob     string
	Optional bool // nothing there is no error
	Lenient  bool // whatever can't be read is left out
}

// Found is a text that was read.
type Found struct {
	Source string // its path in the workspace, or the name of an artifact
	Text   string
	Size   int // bytes
}

// Reader reads for the worker, as far as it may see.
type Reader interface {
	// Files returns the text files that wants names, in that order, those of one
	// glob by path. Unless a want is optional, nothing there is an error, and
	// what may not be seen or is no text always is one, unless it is lenient.
	Files(wants []Want) ([]Found, error)

	// Artifact returns the text of an artifact by its handle. The error wraps
	// goclaw.ErrNotFound if there is none.
	Artifact(handle string) (Found, error)
}

// Bounds of what a slice may name.
const (
	maxListed    = 200 // files that a list of `from` names
	maxMentioned = 200 // paths in a text that are looked for
)

// Assemble reads and fits the slices of the definition at file for an input,
// which is a JSON object or empty. The error is one line that names the slice's
// place.
func Assemble(file string, wanted []definition.Slice, input json.RawMessage, read Reader) ([]goclaw.SliceText, error) {
	a := assembler{read: read}
	if len(bytes.TrimSpace(input)) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(input))
		decoder.UseNumber()
		if err := decoder.Decode(&a.input); err != nil {
			return nil, fmt.Errorf("%s: the input can't be read: %w; give a JSON object", file, err)
		}
	}
	var out []goclaw.SliceText
	for _, s := range wanted {
		texts, err := a.slice(s)
		if err != nil {
			return nil, place(file, s, err)
		}
		out = append(out, texts...)
	}
	return out, nil
}

// refusal is why a slice can't be had, and what to do about it.
type refusal struct{ message, hint string }

func (r refusal) Error() string {
	if r.hint == "" {
		return r.message
	}
	return r.message + "; " + r.hint
}

func refuse(hint, format string, args ...any) error {
	return refusal{fmt.Sprintf(format, args...), hint}
}

// absent is a refusal because nothing is there, which optional allows.
type absent struct{ refusal }

func missing(format string, args ...any) error {
	return absent{refusal{fmt.Sprintf(format, args...), "give it, or write optional: true"}}
}

// placed is an error with the place of its slice.
type placed struct {
	at  string
	err error
}

func (p placed) Error() string { return strings.ReplaceAll(p.at+p.err.Error(), "\n", " ") }
func (p placed) Unwrap() error { return p.err }

func place(file string, s definition.Slice, err error) error {
	at := fmt.Sprintf("%s:%d:%d: ", file, s.Line, s.Col)
	var ours refusal
	var nothing absent
	if errors.As(err, &ours) || errors.As(err, &nothing) {
		at += "slice " + source(s) + ": " // the Reader's errors name it
	}
	return placed{at, err}
}

// source is how the definition names where a slice comes from.
func source(s definition.Slice) string {
	for _, kind := range []struct{ name, value string }{{"file", s.File}, {"glob", s.Glob}, {"from", s.From}, {"artifact", s.Artifact}} {
		if kind.value != "" {
			return kind.name + " " + kind.value
		}
	}
	return "without a source"
}

// assembler holds what later slices refer to.
type assembler struct {
	read  Reader
	input any
	whole []tagged // what was read, before it was fitted
}

type tagged struct {
	tag string
	Found
}

func (a *assembler) slice(s definition.Slice) ([]goclaw.SliceText, error) {
	found, err := a.find(s)
	var nothing absent
	switch {
	case errors.As(err, &nothing) && s.Optional:
		return nil, nil
	case err != nil:
		return nil, err
	case len(found) == 0 && s.Optional:
		return nil, nil
	case len(found) == 0:
		return nil, missing("nothing was found")
	}
	parts := make([]tagged, len(found))
	for i, f := range found {
		parts[i] = tagged{tagOf(s, f), f}
	}
	a.whole = append(a.whole, parts...)
	return fit(s, parts)
}

// find reads what a slice names.
func (a *assembler) find(s definition.Slice) ([]Found, error) {
	want := Want{Name: nameOf(s), Optional: s.Optional}
	var err error
	switch {
	case s.File != "":
		if want.File, err = a.fill(s.File, false); err == nil {
			err = local(want.File)
		}
	case s.Glob != "":
		if want.Glob, err = a.fill(s.Glob, true); err == nil {
			err = local(want.Glob)
		}
	case s.Artifact != "":
		return a.artifact(s)
	default:
		return a.from(s)
	}
	if err != nil {
		return nil, err
	}
	return a.read.Files([]Want{want})
}

func (a *assembler) artifact(s definition.Slice) ([]Found, error) {
	handle, err := a.fill(s.Artifact, false)
	if err != nil {
		return nil, err
	}
	found, err := a.read.Artifact(handle)
	if errors.Is(err, goclaw.ErrNotFound) {
		return nil, missing("there is no artifact %s", handle)
	}
	if err != nil {
		return nil, fmt.Errorf("slice %s: %w", nameOf(s), err)
	}
	return []Found{found}, nil
}

// nameOf is the name of a slice in errors of the Reader.
func nameOf(s definition.Slice) string {
	if s.Tag != "" {
		return s.Tag
	}
	return source(s)
}

// tagOf is the tag that is given, else one made of the file's name.
func tagOf(s definition.Slice, f Found) string {
	if s.Tag != "" {
		return s.Tag
	}
	base := path.Base(f.Source)
	stem := strings.TrimSuffix(base, path.Ext(base))
	var b strings.Builder
	for _, r := range strings.ToLower(stem) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		if b.Len() == 64 {
			break
		}
	}
	tag := strings.Trim(b.String(), "_")
	switch {
	case tag == "":
		return "file"
	case tag[0] <= '9':
		return "file_" + tag
	}
	return tag
}
