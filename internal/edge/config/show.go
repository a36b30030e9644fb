package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// ErrUnset says that neither the file nor a default gives a key's value.
var ErrUnset = errors.New("is not set")

// Show returns what holds for a key, for JSON: the file's value, else the
// default. Secrets are hidden. "" is the whole configuration.
func (c Config) Show(key string) (any, error) {
	at, err := find(key)
	if err != nil {
		return nil, err
	}
	all, _ := plain(reflect.ValueOf(c), "")
	v := all
	for _, step := range at.steps {
		switch t := v.(type) {
		case map[string]any:
			v = t[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(t) {
				return nil, fmt.Errorf("%s: the list has %d elements", key, len(t))
			}
			v = t[n]
		default:
			v = nil
		}
		if v == nil {
			return nil, fmt.Errorf("%s %w%s", key, ErrUnset, about(at))
		}
	}
	return v, nil
}

// about tells what a key is for.
func about(at spot) string {
	if doc := at.tag.Get("doc"); doc != "" {
		return " (" + strings.TrimSuffix(doc, ".") + ")"
	}
	return ""
}

// plain turns a value of the format into one for JSON, in the file's form.
// given is false for what is absent.
func plain(v reflect.Value, tag reflect.StructTag) (out any, given bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, false
		}
		out, _ = plain(v.Elem(), tag)
		return out, true
	case reflect.Struct:
		if s, ok := v.Interface().(Sealed); ok {
			if s.Name != "" {
				return map[string]any{secretKey: s.Name}, true
			}
			return s.Value.String(), !s.IsZero()
		}
		return plainFields(v)
	case reflect.Map:
		all := map[string]any{}
		for _, key := range v.MapKeys() {
			all[key.String()], _ = plain(v.MapIndex(key), tag)
		}
		return all, len(all) > 0
	case reflect.Slice:
		if by := tag.Get("keyed"); by != "" {
			all := map[string]any{}
			for i := range v.Len() {
				item, _ := plain(v.Index(i), "")
				all[v.Index(i).FieldByName(by).String()] = item
			}
			return all, len(all) > 0
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i], _ = plain(v.Index(i), "")
		}
		return list, !v.IsNil()
	case reflect.String:
		return v.String(), v.String() != ""
	case reflect.Int:
		low, _ := limits(tag)
		return v.Interface(), v.Int() >= int64(low)
	}
	return v.Interface(), true
}

func plainFields(v reflect.Value) (out map[string]any, given bool) {
	out = map[string]any{}
	for f := range fieldsOf(v.Type()) {
		if f.Type == reflect.TypeFor[unbuilt]() {
			continue
		}
		if value, ok := plain(v.FieldByIndex(f.Index), f.Tag); ok {
			out[jsonName(f)] = value
		}
	}
	return out, len(out) > 0
}
