package frontmatter

// Kind is what a value is.
type Kind int

// The kinds of values. YAML's timestamps are strings here.
const (
	Null Kind = iota
	String
	Bool
	Int
	Float
	List
	Map
)

// String names the kind for a person.
func (k Kind) String() string {
	return [...]string{"null", "a string", "a boolean", "a whole number", "a number", "a list", "a map"}[k]
}

// Value is one value and where it begins. Line and Col begin at 1 and count in
// the whole file.
type Value struct {
	Kind   Kind
	Text   string  // of a scalar: a string's value, else as it is written
	Bool   bool    // of a Bool
	Int    int64   // of an Int
	Float  float64 // of a Float or an Int
	Items  []Value // of a List
	Fields []Field // of a Map, in order, no key twice
	Line   int
	Col    int
}

// Field returns the field of a map with exactly this key.
func (v Value) Field(key string) (Field, bool) { return find(v.Fields, key) }

// Field is a key with its value.
type Field struct {
	Key   string
	Line  int // of the key
	Col   int
	Value Value
}

func find(fields []Field, key string) (Field, bool) {
	for _, f := range fields {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}

// Any returns the value as encoding/json would decode it: nil, string, bool,
// float64 (int64 for an Int), []any or map[string]any.
func (v Value) Any() any {
	switch v.Kind {
	case String:
		return v.Text
	case Bool:
		return v.Bool
	case Int:
		return v.Int
	case Float:
		return v.Float
	case List:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.Any()
		}
		return items
	case Map:
		fields := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			fields[f.Key] = f.Value.Any()
		}
		return fields
	}
	return nil
}
