package openapi

import "github.com/google/jsonschema-go/jsonschema"

// Operation describes one route.
type Operation struct {
	ID      string // unique; what generated clients call it
	Tag     string // the heading that it stands under
	Summary string // one line
	About   string // more, if there is more to say

	Path    []Param // of each variable of the pattern
	Query   []Param
	Headers []Param

	// Body is a value of the type that the request's JSON is decoded into; nil:
	// the route reads none. Optional says that it may be left out.
	Body     any
	Optional bool

	Answers []Answer

	// Errors are the statuses of failures that the route's own work has, besides
	// those that any such route has.
	Errors []int
}

// Answer is one way in which an operation succeeds.
type Answer struct {
	Status int
	About  string

	// Body is a value of the type that is sent; nil with a Media is anything of
	// that media type, and nil without one is no content.
	Body  any
	Media string // "": application/json

	Headers []Param // of the answer
	Events  []Event // of a text/event-stream
}

// Event is one kind of server-sent event.
type Event struct {
	Name  string // "": events without a name
	About string
	Body  any // as of Answer
}

// Route is an operation in its place.
type Route struct {
	Pattern string // as http.ServeMux takes it
	Open    bool   // it needs no token
	Operation
}

// Described is a type that knows its schema better than its fields do.
type Described interface{ JSONSchema() *jsonschema.Schema }
