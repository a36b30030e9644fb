package openapi_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func operation() openapi.Operation {
	return openapi.Operation{
		ID: "x", Tag: "t", Summary: "s",
		Path: []openapi.Param{{Name: "id"}},
		Query: []openapi.Param{
			{Name: "session", Type: openapi.Key}, {Name: "active", Type: openapi.Flag},
			{Name: "limit", Type: openapi.Number, Least: 1, Most: 10},
			{Name: "kind", Type: openapi.Choice, Repeated: true, Choices: []string{"a", "b"}},
			openapi.Param{Name: "run"}.Must(), {Name: "short", Length: 2},
			{Name: "day", Pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
		},
		Headers: []openapi.Param{{Name: "Idempotency-Key", Length: 8}},
		Answers: []openapi.Answer{{Status: 204}},
	}
}

func read(query, path, header string) (openapi.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	return operation().Read(values, func(string) string { return path }, func(string) []string {
		if header == "" {
			return nil
		}
		return []string{header}
	})
}

func TestReadRefuses(t *testing.T) {
	for _, tc := range []struct{ query, path, header, param string }{
		{"", "p", "", "run"},
		{"run=", "p", "", "run"},
		{"run=1&run=2", "p", "", "run"},
		{"run=1&sesion=x", "p", "", "sesion"},
		{"run=1&session=x", "p", "", "session"},
		{"run=1&active=perhaps", "p", "", "active"},
		{"run=1&limit=0", "p", "", "limit"},
		{"run=1&limit=", "p", "", "limit"},
		{"run=1&session=", "p", "", "session"},
		{"run=1&day=2026-1-1", "p", "", "day"},
		{"run=1&limit=11", "p", "", "limit"},
		{"run=1&limit=99999999999999999999", "p", "", "limit"},
		{"run=1&kind=a&kind=c", "p", "", "kind"},
		{"run=%00", "p", "", "run"},
		{"run=%ff", "p", "", "run"},
		{"run=1&short=abc", "p", "", "short"},
		{"run=1", "a\x00", "", "id"},
		{"run=1", "\xff", "", "id"},
		{"run=1", "p", "123456789", "Idempotency-Key"},
	} {
		_, err := read(tc.query, tc.path, tc.header)
		e, ok := err.(*openapi.Invalid) //nolint:errorlint // returned as it is
		if !ok || e.Param != tc.param || !strings.Contains(e.Why, tc.param) {
			t.Errorf("%q %q %q: %v, want one about %s", tc.query, tc.path, tc.header, err, tc.param)
		}
	}
}

func TestRead(t *testing.T) {
	v, err := read("run=r&session=agent:main:main&active=1&limit=7&kind=a&kind=b", "p", "k")
	if err != nil {
		t.Fatal(err)
	}
	if v.Text("run") != "r" || v.Key("session") != goclaw.MainKey("main") || !v.Flag("active") || v.Number("limit") != 7 ||
		strings.Join(v["kind"], "") != "ab" || v.Text("id") != "p" || v.Text("Idempotency-Key") != "k" {
		t.Errorf("%v", v)
	}
	v, err = read("run=r&short=", "p", "")
	if err != nil || v.Number("limit") != 0 || !v.Key("session").IsZero() || v.Flag("active") || v.Text("short") != "" {
		t.Errorf("%v %v", v, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("run=r&limit=1", "p", "k")
	f.Add("run=%ff&kind=a", "\x00", "")
	f.Fuzz(func(t *testing.T, query, path, header string) {
		v, err := read(query, path, header)
		if err != nil {
			return
		}
		if v.Text("run") == "" || v.Number("limit") < 0 || v.Number("limit") > 10 || strings.ContainsRune(v.Text("id"), 0) {
			t.Errorf("%q %q %q: %v", query, path, header, v)
		}
	})
}

func TestDocumentRefuses(t *testing.T) {
	fine := openapi.Route{Pattern: "GET /x/{id}", Operation: operation()}
	for name, change := range map[string]func(r *openapi.Route){
		"no summary":         func(r *openapi.Route) { r.Summary = "" },
		"no id":              func(r *openapi.Route) { r.ID = "" },
		"no answer":          func(r *openapi.Route) { r.Answers = nil },
		"no method":          func(r *openapi.Route) { r.Pattern = "/x/{id}" },
		"variable left out":  func(r *openapi.Route) { r.Path = nil },
		"variable not there": func(r *openapi.Route) { r.Pattern = "GET /x" },
		"bad limit": func(r *openapi.Route) {
			r.Body = struct {
				A string `json:"a" limit:"3"`
			}{}
		},
	} {
		r := fine
		change(&r)
		if _, err := openapi.Document(info(), []openapi.Route{r}); err == nil {
			t.Error(name + ": it passed")
		}
	}
	if _, err := openapi.Document(info(), []openapi.Route{fine, {Pattern: "PUT /x/{id}", Operation: operation()}}); err == nil {
		t.Error("one id twice: it passed")
	}
	if _, err := openapi.Document(info(), []openapi.Route{fine}); err != nil {
		t.Error(err)
	}
}

func info() openapi.Info {
	return openapi.Info{Title: "t", Version: "1", Failure: func(string) (any, string) { return "", "application/problem+json" }}
}

type body struct {
	Task    string             `json:"task" limit:"1..5"`
	Session goclaw.SessionKey  `json:"session,omitempty"`
	Deep    *goclaw.Limits     `json:"deep,omitempty"`
	Mode    goclaw.Cleanup     `json:"mode,omitempty"`
	Any     json.RawMessage    `json:"any,omitempty"`
	Several []goclaw.Trigger   `json:"several,omitempty"`
	Null    *goclaw.CronTarget `json:"null"`
}

func TestCheckBody(t *testing.T) {
	o := openapi.Operation{Body: body{}}
	check, err := o.CheckBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ body, pointer, says string }{
		{`{"task":"x","null":null}`, "", ""},
		{`{"task":"x","null":"main","any":[1],"deep":{"tokens":1},"mode":"keep","several":["cron"],"session":"s"}`, "", ""},
		{`{"null":null}`, "/task", "required"},
		{`{"task":"","null":null}`, "/task", "minLength"},
		{`{"task":"123456","null":null}`, "/task", "maxLength"},
		{`{"task":null,"null":null}`, "/task", "null"},
		{`{"TASK":"x","task":"x","null":null}`, "", "TASK"},
		{`{"task":"x","null":"other"}`, "/null", ""},
		{`{"task":"x","null":null,"deep":{"tokens":"1"}}`, "/deep/tokens", "string"},
		{`{"task":"x","null":null,"mode":"sell"}`, "/mode", "sell"},
		{`{"task":"x","null":null,"several":["never"]}`, "/several", "never"},
		{`{"task":"x","null":null,"session":null}`, "/session", "null"},
	} {
		err := check([]byte(tc.body))
		if err == nil {
			if tc.says != "" || tc.pointer != "" {
				t.Errorf("%s: it passed", tc.body)
			}
			continue
		}
		e, ok := err.(*openapi.InvalidBody) //nolint:errorlint // returned as it is
		if !ok || e.Pointer != tc.pointer || !strings.Contains(e.Why, tc.says) {
			t.Errorf("%s: %q at %q, want %q at %q", tc.body, err, e.Pointer, tc.says, tc.pointer)
		}
	}
}

// TestEnumsAreComplete holds the schemas of goclaw's texts against the
// constants of their types.
func TestEnumsAreComplete(t *testing.T) {
	type all struct {
		A goclaw.RunState
		B goclaw.Trigger
		C goclaw.Cleanup
		D goclaw.AnnounceMode
		E goclaw.PromptMode
		F goclaw.WaitReason
		G goclaw.RestartPolicy
		H goclaw.EventKind
		I goclaw.NoticeKind
		J goclaw.Role
		K goclaw.PartKind
		L goclaw.StopReason
		M goclaw.ScheduleKind
		N goclaw.CronTarget
		O goclaw.MissedPolicy
		P goclaw.MemorySource
		Q goclaw.DefinitionStatus
		R goclaw.ProblemLevel
		S goclaw.RuleAction
	}
	op := openapi.Operation{ID: "x", Tag: "t", Summary: "s", Answers: []openapi.Answer{{Status: 200, Body: all{}}}}
	doc, err := openapi.Document(info(), []openapi.Route{{Pattern: "GET /x", Operation: op}})
	if err != nil {
		t.Fatal(err)
	}
	constants := rootConstants(t)
	fields := reflect.TypeFor[all]()
	for i := range fields.NumField() {
		name := fields.Field(i).Type.Name()
		s := doc.Components.Schemas[name]
		if s == nil || len(constants[name]) == 0 {
			t.Fatalf("%s: schema %v, constants %v", name, s, constants[name])
		}
		listed := map[any]bool{}
		for _, v := range s.Enum {
			listed[v] = true
		}
		for _, c := range constants[name] {
			if !listed[c] {
				t.Errorf("%s: the schema lacks %q", name, c)
			}
		}
	}
}

// rootConstants are the texts of the root package's typed constants, by type.
func rootConstants(t *testing.T) map[string][]string {
	t.Helper()
	const root = "../../../../"
	found := map[string][]string{}
	for _, file := range []string{"run.go", "event.go", "message.go", "provider.go", "cron.go", "memory.go", "definition.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), root+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name, ok := spec.Type.(*ast.Ident)
			value, isText := spec.Values[0].(*ast.BasicLit)
			if ok && isText && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				found[name.Name] = append(found[name.Name], text)
			}
			return true
		})
	}
	return found
}
