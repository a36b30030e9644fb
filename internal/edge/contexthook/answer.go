package contexthook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// answered is a section as a command returns it. Source, stable and tokens are
// taken so that sections can be passed through, and then decided anew.
type answered struct {
	ID     *string `json:"id"`
	Title  string  `json:"title"`
	Source string  `json:"source"`
	Stable bool    `json:"stable"`
	Tokens float64 `json:"tokens"`
	Text   *string `json:"text"`
}

// answer is the request again, of which only the sections count.
type answer struct {
	Session   json.RawMessage `json:"session"`
	Agent     json.RawMessage `json:"agent"`
	Kind      json.RawMessage `json:"kind"`
	Workspace json.RawMessage `json:"workspace"`
	Model     json.RawMessage `json:"model"`
	Sections  *[]answered     `json:"sections"`
}

// parse reads {"sections": […]} or the list alone.
func parse(data []byte) ([]answered, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return nil, errors.New(`it is empty; write {"sections": […]}`)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	var sections []answered
	if data[0] == '[' {
		if err := decode(data, &sections); err != nil {
			return nil, err
		}
	} else {
		var a answer
		if err := decode(data, &a); err != nil {
			return nil, err
		}
		if a.Sections == nil {
			return nil, errors.New(`it has no sections; write {"sections": […]}`)
		}
		sections = *a.Sections
	}
	return sections, check(sections)
}

func decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return plain(data, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON")
	}
	return nil
}

// plain words an error of encoding/json for somebody who wrote a script.
func plain(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("it is no JSON (line %d: %w)", line, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its JSON ends too early")
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s can't be a %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf(`it can't be a %s; write {"sections": […]}`, kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func check(sections []answered) error {
	seen := map[string]bool{}
	for i, s := range sections {
		switch {
		case s.ID == nil || *s.ID == "":
			return fmt.Errorf("sections[%d] has no id", i)
		case strings.ContainsFunc(*s.ID, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return fmt.Errorf("sections[%d]: the id %q holds spaces or control characters", i, *s.ID)
		case seen[*s.ID]:
			return fmt.Errorf("sections[%d]: the id %q stands there twice", i, *s.ID)
		case s.Text == nil:
			return fmt.Errorf("sections[%d] (%s) has no text; leave the section out, or give it a string", i, *s.ID)
		case strings.ContainsFunc(s.Title, unicode.IsControl):
			return fmt.Errorf("sections[%d] (%s): the title must be one line", i, *s.ID)
		}
		seen[*s.ID] = true
	}
	return nil
}
