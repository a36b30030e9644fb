package web_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw/internal/edge/web"
)

// document is what is served, as a client reads it.
type document struct {
	Paths map[string]map[string]struct {
		ID         string                 `json:"operationId"`
		Security   *[]map[string][]string `json:"security"`
		Parameters []struct {
			Name   string
			In     string
			Schema jsonschema.Schema
		}
		Responses map[string]struct {
			Content map[string]any `json:"content"`
		}
	} `json:"paths"`
	Components struct {
		Schemas map[string]*jsonschema.Schema `json:"schemas"`
	} `json:"components"`
}

func served(t *testing.T, h http.Handler) (raw []byte, doc document) {
	t.Helper()
	w := ask(h, "GET", "/api/openapi.json", "", nil)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return w.Body.Bytes(), doc
}

// endpoint is one operation of the document, with values for its path.
type endpoint struct {
	id, method, path string
	open             bool
}

// endpoints walks the document.
func endpoints(t *testing.T, h http.Handler) []endpoint {
	t.Helper()
	_, doc := served(t, h)
	var all []endpoint
	for path, operations := range doc.Paths {
		for method, op := range operations {
			at := path
			for _, p := range op.Parameters {
				switch {
				case p.In != "path":
				case p.Schema.Pattern != "":
					at = strings.Replace(at, "{"+p.Name+"}", "agent:main:main", 1)
				default:
					at = strings.Replace(at, "{"+p.Name+"}", "goclaw", 1)
				}
			}
			if strings.Contains(at, "{") {
				t.Fatalf("%s %s: its path has a variable that is not described", method, path)
			}
			all = append(all, endpoint{op.ID, strings.ToUpper(method), at, op.Security != nil && len(*op.Security) == 0})
		}
	}
	return all
}

func TestDocumentIsOpenAPI(t *testing.T) {
	raw, doc := served(t, gateway(&fake{}))
	text, err := os.ReadFile("openapi/testdata/openapi-3.1.json") // as the OpenAPI Initiative publishes it
	if err != nil {
		t.Fatal(err)
	}
	var official jsonschema.Schema
	if err := json.Unmarshal(text, &official); err != nil {
		t.Fatal(err)
	}
	resolved, err := official.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Error(err)
	}
	if err := resolved.Validate(map[string]any{"openapi": "3.1.0", "info": map[string]any{}, "paths": map[string]any{}}); err == nil {
		t.Error("a document without a title passed: nothing is checked")
	}
	for name, s := range doc.Components.Schemas {
		if _, err := inPlace(s).Resolve(nil); err != nil && !strings.Contains(err.Error(), "$defs") {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]*)"`).FindAllSubmatch(raw, -1) {
		if doc.Components.Schemas[string(ref[1])] == nil {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
}

// inPlace is a copy of s that does not refer to others.
func inPlace(s *jsonschema.Schema) *jsonschema.Schema {
	text, _ := json.Marshal(s)
	text = regexp.MustCompile(`"\$ref":"[^"]*"`).ReplaceAll(text, []byte(`"$comment":"a reference"`))
	var copied jsonschema.Schema
	_ = json.Unmarshal(text, &copied)
	return &copied
}

func TestEveryRouteIsInTheDocument(t *testing.T) {
	_, doc := served(t, gateway(&fake{}))
	for pattern := range web.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("...}", "}", "{$}", "").Replace(path)
		op, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s is not in the document", pattern)
			continue
		}
		problem := "application/problem+json"
		if strings.HasPrefix(path, "/v1/") {
			problem = "application/json"
		}
		for status, answer := range op.Responses {
			if status == "431" {
				continue // net/http says it, as text
			}
			if _, ok := answer.Content[problem]; status >= "400" && !ok {
				t.Errorf("%s: %s has no %s", pattern, status, problem)
			}
		}
	}
}

func TestDocumentIsStable(t *testing.T) {
	a, _ := served(t, gateway(&fake{}))
	b, _ := served(t, gateway(&fake{}))
	if !slices.Equal(a, b) {
		t.Error("two documents of the same routes differ")
	}
}
