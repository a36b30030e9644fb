package openapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Info is what a document says of the whole surface.
type Info struct {
	Title, Version, About string

	// Failure is the form of a route's errors: a value of their type, and their
	// media type.
	Failure func(pattern string) (body any, media string)
}

// Doc is an OpenAPI 3.1 document; encoding/json writes it.
type Doc struct {
	OpenAPI    string                           `json:"openapi"`
	Info       docInfo                          `json:"info"`
	Security   []map[string][]string            `json:"security"`
	Tags       []docTag                         `json:"tags"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`
}

type docInfo struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

type docTag struct {
	Name string `json:"name"`
}

type components struct {
	Schemas  map[string]*jsonschema.Schema `json:"schemas"`
	Security map[string]securityScheme     `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

type operation struct {
	ID          string                 `json:"operationId"`
	Tags        []string               `json:"tags"`
	Summary     string                 `json:"summary"`
	Description string                 `json:"description,omitempty"`
	Security    *[]map[string][]string `json:"security,omitempty"` // an empty one: none is needed
	Parameters  []parameter            `json:"parameters,omitempty"`
	Body        *body                  `json:"requestBody,omitempty"`
	Responses   map[string]response    `json:"responses"`
}

type parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type body struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type response struct {
	Description string            `json:"description"`
	Headers     map[string]header `json:"headers,omitempty"`
	Content     map[string]media  `json:"content,omitempty"`
}

type header struct {
	Description string             `json:"description,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type media struct {
	Schema *jsonschema.Schema `json:"schema,omitempty"`

	// Events are the kinds of event of a stream by their names; OpenAPI 3.1 has
	// no word for them.
	Events map[string]*jsonschema.Schema `json:"x-goclaw-events,omitempty"`
}

// tokenScheme is the document's name for the gateway's token.
const tokenScheme = "token"

// Document describes routes.
func Document(info Info, routes []Route) (Doc, error) {
	b := builder{info: info, schemas: newSchemas("#/components/schemas/")}
	doc := Doc{
		OpenAPI:  "3.1.0",
		Info:     docInfo{info.Title, info.Version, info.About},
		Security: []map[string][]string{{tokenScheme: {}}},
		Paths:    map[string]map[string]*operation{},
	}
	ids, tags := map[string]string{}, map[string]bool{}
	for _, r := range routes {
		method, path, ok := strings.Cut(r.Pattern, " ")
		if !ok {
			return doc, fmt.Errorf("route %q: it names no method", r.Pattern)
		}
		path = strings.NewReplacer("...}", "}", "{$}", "").Replace(path)
		op, err := b.operation(r, path)
		if err != nil {
			return doc, fmt.Errorf("route %q: %w", r.Pattern, err)
		}
		if other, taken := ids[r.ID]; taken {
			return doc, fmt.Errorf("route %q: its id %s is that of %q", r.Pattern, r.ID, other)
		}
		ids[r.ID] = r.Pattern
		if !tags[r.Tag] {
			tags[r.Tag] = true
			doc.Tags = append(doc.Tags, docTag{r.Tag})
		}
		if doc.Paths[path] == nil {
			doc.Paths[path] = map[string]*operation{}
		}
		doc.Paths[path][strings.ToLower(method)] = op
	}
	doc.Components = components{
		Schemas: b.schemas.built,
		Security: map[string]securityScheme{tokenScheme: {Type: "http", Scheme: "bearer",
			Description: "the token of the gateway: GOCLAW_HOME/token, or GOCLAW_TOKEN"}},
	}
	return doc, nil
}

type builder struct {
	info    Info
	schemas *schemas
}

func (b *builder) operation(r Route, path string) (*operation, error) {
	if r.ID == "" || r.Tag == "" || r.Summary == "" || len(r.Answers) == 0 {
		return nil, fmt.Errorf("it has no description: give it an ID, a Tag, a Summary and Answers")
	}
	if err := samePath(path, r.Path); err != nil {
		return nil, err
	}
	op := &operation{ID: r.ID, Tags: []string{r.Tag}, Summary: r.Summary, Description: r.About, Responses: map[string]response{}}
	if r.Open {
		op.Security = &[]map[string][]string{}
	}
	for _, p := range r.Path {
		op.Parameters = append(op.Parameters, parameter{p.Name, "path", p.About, true, p.schema()})
	}
	for _, p := range r.Query {
		op.Parameters = append(op.Parameters, parameter{p.Name, "query", p.About, p.Required, p.schema()})
	}
	for _, p := range r.Headers {
		op.Parameters = append(op.Parameters, parameter{p.Name, "header", p.About, p.Required, p.schema()})
	}
	if r.Body != nil {
		s, err := b.schemas.of(r.Body)
		if err != nil {
			return nil, err
		}
		op.Body = &body{Required: !r.Optional, Content: map[string]media{"application/json": {Schema: s}}}
	}
	for _, a := range r.Answers {
		res, err := b.answer(a)
		if err != nil {
			return nil, err
		}
		status := strconv.Itoa(a.Status)
		if other, ok := op.Responses[status]; ok { // another form of the same answer
			maps.Copy(other.Content, res.Content)
			continue
		}
		op.Responses[status] = res
	}
	return op, b.failures(r, op)
}

// answer describes one success.
func (b *builder) answer(a Answer) (response, error) {
	res := response{Description: a.About}
	for _, h := range a.Headers {
		if res.Headers == nil {
			res.Headers = map[string]header{}
		}
		res.Headers[h.Name] = header{h.About, h.schema()}
	}
	if a.Body == nil && a.Media == "" {
		return res, nil
	}
	m := media{}
	if a.Body != nil {
		var err error
		if m.Schema, err = b.schemas.of(a.Body); err != nil {
			return res, err
		}
	}
	for _, e := range a.Events {
		if m.Events == nil {
			m.Events = map[string]*jsonschema.Schema{}
		}
		s := &jsonschema.Schema{}
		if e.Body != nil {
			var err error
			if s, err = b.schemas.of(e.Body); err != nil {
				return res, err
			}
		}
		s.Description = e.About
		m.Events[e.Name] = s
	}
	name := a.Media
	if name == "" {
		name = "application/json"
	}
	res.Content = map[string]media{name: m}
	return res, nil
}

// failures adds the errors that r may answer with.
func (b *builder) failures(r Route, op *operation) error {
	may := map[int]string{
		http.StatusForbidden:           "the Host or the Origin is not allowed",
		http.StatusInternalServerError: "the gateway failed",
		http.StatusServiceUnavailable:  "the gateway is stopping, not ready, or has too much to do",
		http.StatusRequestURITooLong:   "the address is too long",
		http.StatusTooManyRequests:     "too many requests, or too many wrong tokens: Retry-After says how long to wait",
	}
	if !r.Open {
		may[http.StatusUnauthorized] = "the token is missing or wrong"
		may[http.StatusTooManyRequests] = "too many requests, or too many wrong tokens: Retry-After says when to try again"
	}
	may[http.StatusBadRequest] = "the request is wrong: detail says what"
	if r.Body != nil {
		may[http.StatusRequestEntityTooLarge] = "the body is too large"
		may[http.StatusUnsupportedMediaType] = "the body is not JSON, or is compressed"
	}
	for _, status := range r.Errors {
		if may[status] == "" {
			may[status] = strings.ToLower(http.StatusText(status))
		}
	}
	failure, name := b.info.Failure(r.Pattern)
	for _, status := range slices.Sorted(maps.Keys(may)) {
		s, err := b.schemas.of(failure)
		if err != nil {
			return err
		}
		op.Responses[strconv.Itoa(status)] = response{Description: may[status], Content: map[string]media{name: {Schema: s}}}
	}
	// The server says this before it knows what is asked.
	op.Responses[strconv.Itoa(http.StatusRequestHeaderFieldsTooLarge)] = response{
		Description: "the head is too large", Content: map[string]media{"text/plain": {Schema: &jsonschema.Schema{Type: "string"}}},
	}
	return nil
}

// samePath reports whether the path's variables are those that are described.
func samePath(path string, described []Param) error {
	var names []string
	for rest := path; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			break
		}
		name, after, _ := strings.Cut(after, "}")
		names, rest = append(names, name), after
	}
	for _, p := range described {
		if !slices.Contains(names, p.Name) {
			return fmt.Errorf("its path has no variable %q", p.Name)
		}
	}
	if len(names) != len(described) {
		return fmt.Errorf("its path has the variables %q; describe each once", names)
	}
	return nil
}
