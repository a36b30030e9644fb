package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"goclaw"
)

// spot is a place in the format that a key names.
type spot struct {
	steps []string // names and list indexes, from the outside in
	typ   reflect.Type
	tag   reflect.StructTag
}

// find reads a key as people write it: names with dots between them, [N] for
// an element of a list. Where names are free, as those of models, they may hold
// dots themselves.
func find(key string) (spot, error) {
	at := spot{typ: reflect.TypeFor[Config]()}
	rest := key
	for rest != "" {
		for at.typ.Kind() == reflect.Pointer {
			at.typ = at.typ.Elem()
		}
		var err error
		if rest, err = at.enter(rest, key); err != nil {
			return spot{}, err
		}
	}
	return at, nil
}

// enter goes one step along rest, and returns what remains of it.
func (at *spot) enter(rest, key string) (string, error) {
	done := strings.TrimSuffix(strings.TrimSuffix(key, rest), ".")
	name, more := rest, ""
	if i := strings.IndexAny(rest[1:], ".["); i >= 0 {
		name, more = rest[:i+1], strings.TrimPrefix(rest[i+1:], ".")
		if more == "" {
			return "", fmt.Errorf("key %q: a name is missing at its end", key)
		}
	}
	switch t := at.typ; {
	case t == reflect.TypeFor[Sealed]():
		if rest != secretKey {
			return "", fmt.Errorf("unknown key %q; a secret is set as a whole: {\"secret\": NAME}", key)
		}
		at.typ, at.tag = reflect.TypeFor[string](), ""
		more = ""
	case t.Kind() == reflect.Struct:
		field, ok := fieldNamed(t, name)
		if !ok {
			return "", fmt.Errorf("unknown key %q; %s", join(done, name), hintFor(t, name))
		}
		if field.Type == reflect.TypeFor[unbuilt]() {
			return "", fmt.Errorf("%s is not supported by this version yet", join(done, name))
		}
		at.typ, at.tag = field.Type, field.Tag
	case t.Kind() == reflect.Map:
		name, more = freeName(t, rest)
		at.typ = t.Elem()
	case t.Kind() == reflect.Slice && at.tag.Get("keyed") != "":
		if err := goclaw.CheckAgentID(name); err != nil {
			return "", fmt.Errorf("key %q: %w", key, err)
		}
		at.typ, at.tag = t.Elem(), ""
	case t.Kind() == reflect.Slice:
		number, closed := strings.CutSuffix(strings.TrimPrefix(name, "["), "]")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || !closed || !strings.HasPrefix(name, "[") {
			return "", fmt.Errorf("key %q: %s is a list; write %s[0] for its first element", key, done, done)
		}
		name = number
		at.typ = t.Elem()
	default:
		return "", fmt.Errorf("unknown key %q; %s holds nothing further", key, done)
	}
	at.steps = append(at.steps, name)
	return more, nil
}

// freeName takes a name with dots from rest: all of it, but for a field of what
// it names.
func freeName(t reflect.Type, rest string) (name, more string) {
	if t.Elem().Kind() != reflect.Struct {
		return rest, ""
	}
	if i := strings.LastIndexByte(rest, '.'); i > 0 {
		if _, ok := fieldNamed(t.Elem(), rest[i+1:]); ok {
			return rest[:i], rest[i+1:]
		}
	}
	return rest, ""
}
