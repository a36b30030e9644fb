package openapi

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// ParamType says how a parameter is written.
type ParamType string

// The types of parameter.
const (
	Text   ParamType = "text"
	Flag   ParamType = "flag"   // true or false
	Number ParamType = "number" // whole, from Least to Most
	Key    ParamType = "key"    // a session's
	Choice ParamType = "choice" // one of Choices
)

// Param is one parameter of a path, a query or a header.
type Param struct {
	Name     string
	Type     ParamType // "": Text
	About    string
	Required bool
	Repeated bool // it may be given several times

	Least   int
	Most    int
	Choices []string
	Length  int    // of a text, at most, in characters; 0: maxLength
	Pattern string // of a text
}

// maxLength bounds a text that has no other bound, in characters.
const maxLength = 1024

// Must is p as one that is required.
func (p Param) Must() Param {
	p.Required = true
	return p
}

// schema is what the document says of one value.
func (p Param) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	switch p.Type {
	case Flag:
		s.Type = "boolean"
	case Number:
		s.Type, s.Minimum, s.Maximum = "integer", jsonschema.Ptr(float64(p.Least)), jsonschema.Ptr(float64(p.Most))
	case Key:
		s.Pattern, s.Examples = "^(agent|cron):[^\\x00]+$", []any{"agent:main:main"}
	case Choice:
		for _, c := range p.Choices {
			s.Enum = append(s.Enum, c)
		}
	default:
		s.Pattern, s.MaxLength = p.Pattern, jsonschema.Ptr(p.length())
		if p.Required {
			s.MinLength = jsonschema.Ptr(1)
		}
	}
	if p.Repeated {
		return &jsonschema.Schema{Type: "array", Items: s}
	}
	return s
}

func (p Param) length() int {
	if p.Length > 0 {
		return p.Length
	}
	return maxLength
}

// Invalid says which parameter is wrong, and how it should be.
type Invalid struct {
	Param string
	Why   string
}

func (e *Invalid) Error() string { return e.Why }

func (p Param) invalid(format string, args ...any) error {
	return &Invalid{p.Name, fmt.Sprintf("parameter %q: ", p.Name) + fmt.Sprintf(format, args...)}
}

// check reports what is wrong with one value.
func (p Param) check(v string) error {
	switch {
	case !utf8.ValidString(v):
		return p.invalid("it is not UTF-8")
	case strings.ContainsRune(v, 0):
		return p.invalid("it holds a NUL")
	}
	var err error
	switch p.Type {
	case Flag:
		if _, err = strconv.ParseBool(v); err != nil {
			return p.invalid("want true or false, not %q", v)
		}
	case Number:
		if n, err := strconv.Atoi(v); err != nil || n < p.Least || n > p.Most {
			return p.invalid("want a number from %d to %d, not %q", p.Least, p.Most, v)
		}
	case Key:
		if _, err = goclaw.ParseSessionKey(v); err != nil {
			return p.invalid("%v", err)
		}
	case Choice:
		if !slices.Contains(p.Choices, v) {
			return p.invalid("%q is none of %s", v, strings.Join(p.Choices, ", "))
		}
	default:
		if n := utf8.RuneCountInString(v); n > p.length() {
			return p.invalid("at most %d characters are allowed, these are %d", p.length(), n)
		}
		if p.Pattern == "" {
			return nil
		}
		if ok, err := regexp.MatchString(p.Pattern, v); err != nil || !ok {
			return p.invalid("%q does not match %s: want %s", v, p.Pattern, p.About)
		}
	}
	return nil
}

// Values are the parameters of one request, checked.
type Values map[string][]string

// Read checks what was given: query by the rule that nothing unknown is
// accepted, lest a misspelt filter selects everything; of the headers only
// those that are declared.
func (o Operation) Read(query url.Values, path func(string) string, header func(string) []string) (Values, error) {
	values := Values{}
	for name := range query {
		if !slices.ContainsFunc(o.Query, func(p Param) bool { return p.Name == name }) {
			return nil, &Invalid{name, fmt.Sprintf("unknown parameter %q (%s)", name, known(o.Query))}
		}
	}
	for _, p := range o.Path {
		if err := values.take(p, []string{path(p.Name)}); err != nil {
			return nil, err
		}
	}
	for _, p := range o.Query {
		if err := values.take(p, query[p.Name]); err != nil {
			return nil, err
		}
	}
	for _, p := range o.Headers {
		if err := values.take(p, header(p.Name)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func known(params []Param) string {
	if len(params) == 0 {
		return "there are none"
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return "known: " + strings.Join(names, ", ")
}

func (v Values) take(p Param, given []string) error {
	switch {
	case p.Required && strings.Join(given, "") == "":
		return &Invalid{p.Name, fmt.Sprintf("parameter %q is required: %s", p.Name, p.About)}
	case len(given) > 1 && !p.Repeated:
		return &Invalid{p.Name, fmt.Sprintf("parameter %q is given twice", p.Name)}
	}
	for _, text := range given {
		if err := p.check(text); err != nil {
			return err
		}
	}
	if len(given) > 0 {
		v[p.Name] = given
	}
	return nil
}

// Text is the value of a parameter; "" if it was not given.
func (v Values) Text(name string) string {
	if len(v[name]) == 0 {
		return ""
	}
	return v[name][0]
}

// Number is 0 if it was not given.
func (v Values) Number(name string) int {
	n, _ := strconv.Atoi(v.Text(name)) // checked
	return n
}

// Flag is false if it was not given.
func (v Values) Flag(name string) bool {
	on, _ := strconv.ParseBool(v.Text(name)) // checked
	return on
}

// Key is zero if it was not given.
func (v Values) Key(name string) goclaw.SessionKey {
	key, _ := goclaw.ParseSessionKey(v.Text(name)) // checked
	return key
}
