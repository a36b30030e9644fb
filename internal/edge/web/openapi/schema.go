package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// schemas makes schemas from Go types; every named struct and every type with
// a schema of its own becomes a component.
type schemas struct {
	place string                              // where those with a name are kept
	own   map[reflect.Type]*jsonschema.Schema // of types that are not what their Go form says
	refs  map[reflect.Type]*jsonschema.Schema // of all that has a name
	named map[string]reflect.Type
	built map[string]*jsonschema.Schema
}

func newSchemas(place string) *schemas {
	return &schemas{
		place: place, own: nouns(), refs: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[json.RawMessage](): {Description: "any JSON"},
		},
		named: map[string]reflect.Type{}, built: map[string]*jsonschema.Schema{},
	}
}

// nouns are the schemas of goclaw's types that are not structs.
func nouns() map[reflect.Type]*jsonschema.Schema {
	m := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[goclaw.Millis](): {Type: "integer", Description: "a moment, in Unix milliseconds; 0: not set"},
		reflect.TypeFor[goclaw.SessionKey](): {Type: "string", MaxLength: jsonschema.Ptr(maxLength),
			Description: "the address of a session; empty: none", Examples: []any{"agent:main:main"}},
	}
	enum(m, "the state of a run", goclaw.StateQueued, goclaw.StateRunning, goclaw.StateWaiting,
		goclaw.StateInterrupted, goclaw.StateCompleted, goclaw.StateFailed, goclaw.StateTimeout, goclaw.StateCancelled)
	enum(m, "what started a run", goclaw.TriggerUser, goclaw.TriggerAnnouncement, goclaw.TriggerSpawn,
		goclaw.TriggerCron, goclaw.TriggerHeartbeat, goclaw.TriggerCompact)
	enum(m, "what becomes of a worker's transcript after its result was told; empty: keep", goclaw.CleanupKeep, goclaw.CleanupDelete, "")
	enum(m, "how a run's result reaches its requester; empty: by its kind", goclaw.AnnounceTogether, goclaw.AnnounceEach, goclaw.AnnounceNone, "")
	enum(m, "which sections a system prompt has", goclaw.PromptFull, goclaw.PromptMinimal, goclaw.PromptNone, "")
	enum(m, "what a waiting run waits for", goclaw.WaitWorkers, goclaw.WaitPerson, goclaw.WaitCaller)
	enum(m, "what becomes of a run whose process died; empty: resume", goclaw.RestartResume, goclaw.RestartFail, goclaw.RestartAsk, "")
	enum(m, "what happened to a run", goclaw.EventPrompt, goclaw.EventModel, goclaw.EventIntent, goclaw.EventResult,
		goclaw.EventInput, goclaw.EventWaiting, goclaw.EventResumed, goclaw.EventCompact, goclaw.EventHandoff, goclaw.EventEnd)
	enum(m, "what a notice tells", goclaw.NoticeRun, goclaw.NoticeText, goclaw.NoticeThinking, goclaw.NoticeReset,
		goclaw.NoticeToolCall, goclaw.NoticeToolResult, goclaw.NoticeUsage, goclaw.NoticeRetry, goclaw.NoticeWarning,
		goclaw.NoticeCompact, goclaw.NoticeEvent, goclaw.NoticeLag)
	enum(m, "whether a definition can be used", goclaw.DefinitionOK, goclaw.DefinitionWarning, goclaw.DefinitionDegraded, goclaw.DefinitionRejected)
	enum(m, "how much a problem weighs", goclaw.LevelNotice, goclaw.LevelWarning, goclaw.LevelDegrade, goclaw.LevelError)
	enum(m, "what a rule says about a call", goclaw.RuleAllow, goclaw.RuleAsk, goclaw.RuleDeny)
	enum(m, "who speaks", goclaw.RoleUser, goclaw.RoleAssistant)
	enum(m, "which field of a part is set", goclaw.PartText, goclaw.PartThinking, goclaw.PartToolCall, goclaw.PartToolResult)
	enum(m, "why a model stopped", goclaw.StopEnd, goclaw.StopTools, goclaw.StopMaxTokens, goclaw.StopSequence, goclaw.StopRefusal, "")
	enum(m, "how a schedule is written", goclaw.ScheduleAt, goclaw.ScheduleEvery, goclaw.ScheduleCron)
	enum(m, "what a firing is", goclaw.TargetMain, goclaw.TargetIsolated)
	enum(m, "what becomes of due times at which nothing could run", goclaw.MissedOnce, goclaw.MissedSkip, "")
	enum(m, "where a piece of memory comes from", goclaw.MemoryFiles, goclaw.MemoryTranscripts)
	return m
}

// enum adds a type whose values are these.
func enum[T ~string](m map[reflect.Type]*jsonschema.Schema, about string, values ...T) {
	s := &jsonschema.Schema{Type: "string", Description: about}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	m[reflect.TypeFor[T]()] = s
}

// of is the schema of v's type, mostly a reference. A list at the top is
// never null.
func (s *schemas) of(v any) (*jsonschema.Schema, error) {
	t := reflect.TypeOf(v)
	if err := s.collect(t); err != nil {
		return nil, err
	}
	made, err := s.make(t, nil)
	if err == nil && t.Kind() == reflect.Slice {
		made.Type, made.Types = "array", nil
	}
	return made, err
}

// collect gives every type that t leads to a name and a place.
func (s *schemas) collect(t reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		if s.refs[t] != nil {
			return nil
		}
		t = t.Elem()
	}
	own := s.own[t]
	if d, ok := reflect.Zero(t).Interface().(Described); ok {
		own = d.JSONSchema()
	}
	if s.refs[t] != nil || own == nil && (t.Kind() != reflect.Struct || t.PkgPath() == "time") {
		return nil
	}
	name := strings.ToUpper(t.Name()[:min(1, len(t.Name()))]) + t.Name()[min(1, len(t.Name())):]
	if name != "" {
		if other, taken := s.named[name]; taken {
			return fmt.Errorf("two types are called %s: %s and %s; rename one", name, t, other)
		}
		s.named[name], s.refs[t] = t, &jsonschema.Schema{Ref: s.place + name}
	}
	if own != nil {
		s.built[name] = own
		return nil
	}
	var embedded []reflect.Type
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			embedded = append(embedded, f.Type)
			continue
		}
		if tag := f.Tag.Get("json"); !f.IsExported() || tag == "-" {
			continue
		}
		if err := s.collect(f.Type); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	made, err := s.make(t, append(embedded, t))
	s.built[name] = made
	return err
}

// make infers a schema; the types in open are written out, all others that
// have a name are referred to.
func (s *schemas) make(t reflect.Type, open []reflect.Type) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{}
	for named, ref := range s.refs {
		if !slices.Contains(open, named) {
			known[named] = ref
		}
	}
	made, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	tidy(made)
	if made.Properties == nil { // a reference, or no struct
		return made, nil
	}
	return made, limits(t, made)
}

// tidy mends what inference makes of pointers and lists: one that is left out
// when it is empty is never null, and a reference can't say so beside itself.
func tidy(s *jsonschema.Schema) {
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) {
			s.Properties[name] = nullable(p)
		} else if slices.Contains(p.Types, "null") {
			notNull(p)
		}
		tidy(p)
	}
	if s.Items != nil {
		tidy(s.Items)
		s.Items = nullable(s.Items)
	}
}

// notNull takes null from the types of s.
func notNull(s *jsonschema.Schema) {
	rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
	s.Types = nil
	if len(rest) == 1 {
		s.Type = rest[0]
	}
}

// nullable is s, or either what s refers to or null if s is a pointer's.
func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Ref == "" || len(s.Types) == 0 {
		return s
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: s.Ref, Description: s.Description}, {Type: "null"}}}
}
