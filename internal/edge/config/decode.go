package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// decoder fills a Config from a syntax tree and collects what is wrong.
type decoder struct {
	path, dir string
	src       []byte
	problems  Problems
	refs      []ref
	clear     []clearText
}

// slot is where a value goes, with the tags that describe it.
type slot struct {
	dst reflect.Value
	tag reflect.StructTag
}

func target(cfg *Config) slot { return slot{dst: reflect.ValueOf(cfg).Elem()} }

func (d *decoder) problem(offset int, hint, what string, args ...any) {
	at := placeAt(d.src, offset)
	d.problems = append(d.problems, Problem{
		Path: d.path, Line: at.line, Col: at.col, What: fmt.Sprintf(what, args...), Hint: hint,
	})
}

// value stores v, whose key is for messages ("" for the whole file).
func (d *decoder) value(v hujson.Value, to slot, key string) {
	switch t := to.dst.Type(); t.Kind() {
	case reflect.Pointer:
		to.dst.Set(reflect.New(t.Elem()))
		d.value(v, slot{to.dst.Elem(), to.tag}, key)
	case reflect.Struct:
		if t == reflect.TypeFor[Sealed]() {
			d.sealed(v, to, key)
			return
		}
		d.object(v, to, key)
	case reflect.Map:
		d.table(v, to, key)
	case reflect.Slice:
		if by := to.tag.Get("keyed"); by != "" {
			d.keyed(v, to, key, by)
			return
		}
		d.list(v, to, key)
	case reflect.String:
		if lit, ok := d.literal(v, key, '"', "a string", `put it in double quotes`); ok {
			d.text(v, lit.String(), to, key)
		}
	case reflect.Int, reflect.Float64:
		d.number(v, to, key)
	case reflect.Bool:
		if v.Value.Kind() == 't' || v.Value.Kind() == 'f' {
			to.dst.SetBool(v.Value.Kind() == 't')
			return
		}
		d.wrongType(v, key, "true or false", "write true or false without quotes")
	default:
		panic("config: no decoder for " + t.String()) // a struct here is wrong: every test fails
	}
}

func (d *decoder) wrongType(v hujson.Value, key, want, hint string) {
	if v.Value.Kind() == 'n' {
		hint = "give it a value or leave the key out"
	}
	name := key
	if key == "" {
		name = "the file"
	}
	d.problem(v.StartOffset, hint, "%s must be %s, not %s", name, want, kindName(v.Value.Kind()))
}

func kindName(k hujson.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

func (d *decoder) literal(v hujson.Value, key string, kind hujson.Kind, want, hint string) (hujson.Literal, bool) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != kind {
		d.wrongType(v, key, want, hint)
		return nil, false
	}
	return lit, true
}

// members returns an object's members, having complained about duplicates.
func (d *decoder) members(v hujson.Value, key string) ([]hujson.ObjectMember, bool) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.wrongType(v, key, "an object", "write { … }")
		return nil, false
	}
	first := map[string]int{}
	var unique []hujson.ObjectMember
	for _, m := range obj.Members {
		name := nameOf(m)
		if line, twice := first[name]; twice {
			d.problem(m.Name.StartOffset, "remove one of them", "the key %s stands here and in line %d", join(key, name), line)
			continue
		}
		first[name] = placeAt(d.src, m.Name.StartOffset).line
		unique = append(unique, m)
	}
	return unique, true
}

func nameOf(m hujson.ObjectMember) string {
	lit, _ := m.Name.Value.(hujson.Literal)
	return lit.String()
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (d *decoder) object(v hujson.Value, to slot, key string) {
	members, ok := d.members(v, key)
	if !ok {
		return
	}
	given := map[string]bool{}
	for _, m := range members {
		name := nameOf(m)
		given[name] = true
		field, ok := fieldNamed(to.dst.Type(), name)
		switch {
		case !ok:
			d.unknownKey(m, to.dst.Type(), key, name)
		case field.Type == reflect.TypeFor[unbuilt]():
			d.problem(m.Name.StartOffset, "remove it", "%s is not supported by this version yet", join(key, name))
		default:
			d.value(m.Value, slot{to.dst.FieldByIndex(field.Index), field.Tag}, join(key, name))
		}
	}
	for f := range fieldsOf(to.dst.Type()) {
		if f.Tag.Get("required") != "" && !given[jsonName(f)] && to.dst.FieldByIndex(f.Index).IsZero() {
			d.problem(v.StartOffset, "add it", "%s is missing", join(key, jsonName(f)))
		}
	}
}

func (d *decoder) unknownKey(m hujson.ObjectMember, t reflect.Type, key, name string) {
	d.problem(m.Name.StartOffset, hintFor(t, name), "unknown key %s", strconv.Quote(join(key, name)))
}

// hintFor says what may have been meant by a name that t doesn't have.
func hintFor(t reflect.Type, name string) string {
	var known []string
	for f := range fieldsOf(t) {
		if f.Type != reflect.TypeFor[unbuilt]() {
			known = append(known, jsonName(f))
		}
	}
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if places := placesOf(name); len(places) > 0 && len(places) < 4 {
		return "did you mean " + strings.Join(places, " or ") + "?"
	}
	return "known here: " + strings.Join(known, ", ")
}

// fieldsOf yields the fields of t that have a key.
func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if name := jsonName(f); name != "" && name != "-" && !yield(f) {
				return
			}
		}
	}
}

// jsonName is the field's key in the file, "" if it has none.
func jsonName(f reflect.StructField) string {
	if f.Type == reflect.TypeFor[unbuilt]() {
		return f.Tag.Get("key")
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for f := range fieldsOf(t) {
		if jsonName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// placesOf lists the paths in the format at which a key of that name may stand.
func placesOf(name string) []string {
	var places []string
	var walk func(t reflect.Type, key string)
	walk = func(t reflect.Type, key string) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			if t.Kind() == reflect.Slice {
				key += "[]"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range fieldsOf(t) {
			if f.Type == reflect.TypeFor[unbuilt]() || f.Name == "Entries" {
				continue
			}
			if jsonName(f) == name {
				places = append(places, join(key, name))
			}
			walk(f.Type, join(key, jsonName(f)))
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return places
}

// keyed reads an object into a list of structs, in the file's order; the field
// named by takes the key.
func (d *decoder) keyed(v hujson.Value, to slot, key, by string) {
	members, ok := d.members(v, key)
	if !ok {
		return
	}
	field, _ := to.dst.Type().Elem().FieldByName(by)
	for _, m := range members {
		item := reflect.New(to.dst.Type().Elem()).Elem()
		name := nameOf(m)
		d.text(m.Name, name, slot{item.FieldByIndex(field.Index), field.Tag}, join(key, name))
		d.value(m.Value, slot{dst: item}, join(key, name))
		if got := item.FieldByIndex(field.Index).String(); got != name {
			d.problem(m.Value.StartOffset, "leave it out here", "%s: the %s %q differs from the key", join(key, name), jsonName(field), got)
		}
		to.dst.Set(reflect.Append(to.dst, item))
	}
}

// table reads an object whose keys are free.
func (d *decoder) table(v hujson.Value, to slot, key string) {
	members, ok := d.members(v, key)
	if !ok {
		return
	}
	table := reflect.MakeMap(to.dst.Type())
	for _, m := range members {
		item := reflect.New(to.dst.Type().Elem()).Elem()
		d.value(m.Value, slot{item, to.tag}, join(key, nameOf(m)))
		d.tableKey(m, to.tag.Get("keys"), key)
		table.SetMapIndex(reflect.ValueOf(nameOf(m)), item)
	}
	to.dst.Set(table)
}

func (d *decoder) list(v hujson.Value, to slot, key string) {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		d.wrongType(v, key, "a list", "write [ … ]")
		return
	}
	items := reflect.MakeSlice(to.dst.Type(), len(arr.Elements), len(arr.Elements))
	var seen []string
	for i, e := range arr.Elements {
		at := fmt.Sprintf("%s[%d]", key, i)
		d.value(e, slot{items.Index(i), to.tag}, at)
		lit, ok := e.Value.(hujson.Literal)
		if !ok || lit.Kind() != '"' {
			continue
		}
		same := lit.String()
		if item := items.Index(i); item.Kind() == reflect.String {
			same = item.String() // as it was understood: ./a and a are one file
		}
		if slices.Contains(seen, same) && to.tag.Get("repeats") == "" {
			d.problem(e.StartOffset, "remove one of them", "%s: %q stands twice in the list", at, lit.String())
		}
		seen = append(seen, same)
	}
	to.dst.Set(items)
}

func (d *decoder) number(v hujson.Value, to slot, key string) {
	lit, ok := d.literal(v, key, '0', "a number", "write it without quotes")
	if !ok {
		return
	}
	low, high := limits(to.tag)
	if to.dst.Kind() == reflect.Float64 {
		n, err := strconv.ParseFloat(string(lit), 64)
		if err != nil || n < float64(low) || n > float64(high) {
			d.problem(v.StartOffset, fmt.Sprintf("use a number from %d to %d", low, high), "%s is %s", key, lit)
			return
		}
		to.dst.SetFloat(n)
		return
	}
	n, err := strconv.Atoi(string(lit))
	if err != nil || n < low || n > high {
		d.problem(v.StartOffset, fmt.Sprintf("use a whole number from %d to %d", low, high), "%s is %s", key, lit)
		return
	}
	to.dst.SetInt(int64(n))
}

// limits reads the tag range:"low..high", which every number has.
func limits(tag reflect.StructTag) (low, high int) {
	a, b, _ := strings.Cut(tag.Get("range"), "..")
	low, errLow := strconv.Atoi(a)
	high, errHigh := strconv.Atoi(b)
	if errLow != nil || errHigh != nil {
		panic("config: a number without a range") // a struct here is wrong: every test fails
	}
	return low, high
}
