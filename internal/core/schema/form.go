package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Flaw is why a text is no JSON Schema, and where.
type Flaw struct {
	At   string // a JSON pointer; "" is the whole schema
	What string
}

func (f *Flaw) Error() string {
	if f.At == "" {
		return f.What
	}
	return f.What + " (at " + f.At + ")"
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// keywords says for each keyword what is wrong with a value, "" if nothing is;
// those that hold schemas are in the three tables below. Any other name is an
// annotation.
var keywords = map[string]func(v any) string{
	"type": typeFlaw, "required": namesFlaw, "enum": enumFlaw,
	"minimum": numberFlaw, "maximum": numberFlaw, "exclusiveMinimum": numberFlaw, "exclusiveMaximum": numberFlaw, "multipleOf": numberFlaw,
	"minLength": countFlaw, "maxLength": countFlaw, "minItems": countFlaw, "maxItems": countFlaw,
	"minProperties": countFlaw, "maxProperties": countFlaw, "minContains": countFlaw, "maxContains": countFlaw,
	"uniqueItems": boolFlaw, "pattern": textFlaw, "$ref": textFlaw, "const": anyFlaw,
}

var (
	holdOne  = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	holdList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"} // items: until draft 7
	holdMap  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// form finds the first place where v is no schema: a keyword whose value is of
// the wrong kind, or a name that can only be a misspelt keyword.
func form(v any, at string) *Flaw {
	fields, ok := v.(map[string]any)
	if _, isBool := v.(bool); isBool {
		return nil
	}
	if !ok {
		return &Flaw{at, fmt.Sprintf("%s is no schema; write a map such as {type: %s}", show(v), suggested(v))}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below, value := at+"/"+pointerName(name), fields[name]
		list, isList := value.([]any)
		named, isMap := value.(map[string]any)
		var flaw *Flaw
		switch check := keywords[name]; {
		case check != nil:
			if what := check(value); what != "" {
				flaw = &Flaw{below, strconv.Quote(name) + " " + what}
			}
		case isList && slices.Contains(holdList, name):
			for i, part := range list {
				flaw = first(flaw, func() *Flaw { return form(part, below+"/"+strconv.Itoa(i)) })
			}
		case slices.Contains(holdOne, name):
			flaw = form(value, below)
		case slices.Contains(holdList, name):
			flaw = &Flaw{below, strconv.Quote(name) + " " + cant(value, "a list of schemas")}
		case slices.Contains(holdMap, name) && !isMap:
			flaw = &Flaw{below, strconv.Quote(name) + " " + cant(value, "a map of names to schemas")}
		case slices.Contains(holdMap, name):
			for _, part := range slices.Sorted(maps.Keys(named)) {
				flaw = first(flaw, func() *Flaw { return form(named[part], below+"/"+pointerName(part)) })
			}
		default:
			flaw = misspelt(name, below)
		}
		if flaw != nil {
			return flaw
		}
	}
	return nil
}

func first(found *Flaw, next func() *Flaw) *Flaw {
	if found != nil {
		return found
	}
	return next()
}

// misspelt refuses a name within one edit of a keyword that narrows: as an
// annotation it would let everything pass.
func misspelt(name, at string) *Flaw {
	for _, known := range slices.Concat(slices.Sorted(maps.Keys(keywords)), holdOne, holdList, holdMap) {
		if len(known) > 3 && known != "then" && known != "else" && Near(name, known) {
			return &Flaw{at, fmt.Sprintf("%q is no keyword of JSON Schema; did you mean %q?", name, known)}
		}
	}
	return nil
}

// suggested is the type that a shorthand such as {name: string} may mean.
func suggested(v any) string {
	if name, ok := v.(string); ok && slices.Contains(typeNames, name) {
		return name
	}
	return "string"
}

// kind is what a value is, with its article.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case float64:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a " + typeOf(v)
}

func cant(v any, instead string) string { return "can't be " + kind(v) + "; write " + instead }

func typeFlaw(v any) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		if name, ok := one.(string); !ok || !slices.Contains(typeNames, name) {
			return "can't be " + show(one) + "; write one of " + strings.Join(typeNames, ", ")
		}
	}
	if len(list) == 0 {
		return "can't be an empty list; name a type"
	}
	return ""
}

func namesFlaw(v any) string {
	list, ok := v.([]any)
	if !ok {
		return cant(v, "a list of names")
	}
	for _, one := range list {
		if _, isText := one.(string); !isText {
			return "can't hold " + kind(one) + "; write a list of names"
		}
	}
	return ""
}

func enumFlaw(v any) string {
	if list, ok := v.([]any); !ok {
		return cant(v, "a list of values")
	} else if len(list) == 0 {
		return "can't be an empty list; write the values"
	}
	return ""
}

func numberFlaw(v any) string {
	if _, ok := v.(float64); !ok {
		return cant(v, "a number")
	}
	return ""
}

func countFlaw(v any) string {
	if n, ok := v.(float64); !ok || n < 0 || n != math.Trunc(n) {
		return "can't be " + show(v) + "; write a whole number from 0"
	}
	return ""
}

func boolFlaw(v any) string {
	if _, ok := v.(bool); !ok {
		return cant(v, "true or false")
	}
	return ""
}

func textFlaw(v any) string {
	if _, ok := v.(string); !ok {
		return cant(v, "a text")
	}
	return ""
}

func anyFlaw(any) string { return "" }

// checkForm reads a schema as any JSON and looks for its first flaw.
func checkForm(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if flaw := form(v, ""); flaw != nil {
		return flaw
	}
	return nil
}
