package typed

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	placeholder = regexp.MustCompile(`\{\{([^{}\n\r]*)\}\}`)
	fieldName   = regexp.MustCompile(`^[\pL_][\pL\pN_-]*(\.[\pL\pN_-]+)*$`)
)

// Fill replaces {{name}} and {{a.b}} by fields of the input (a number after a
// dot is a place in a list): texts as they are, all else as compact JSON. What
// is filled in is not looked through again. Placeholders that name no field
// stay, and are reported once each, in order.
func Fill(text string, input json.RawMessage) (filled string, missing []string) {
	filled, missing, _ = fill(text, input, func(_ string, v any) (string, error) {
		if s, ok := v.(string); ok {
			return s, nil
		}
		raw, err := canonical(v)
		return string(raw), err
	})
	return filled, missing
}

// FillPath fills the path of a file. Values must be texts, numbers or
// booleans, and can't lead anywhere but down: one with "..", an empty part, a
// backslash, a control character, or a slash at an end is refused, and so is a
// path that is none inside the workspace once it is filled.
func FillPath(path string, input json.RawMessage) (string, error) {
	return fillPath(path, input, func(s string) string { return s })
}

// FillGlob is FillPath for a pattern: what has a meaning in patterns is
// escaped in values, so that they match themselves.
func FillGlob(pattern string, input json.RawMessage) (string, error) {
	return fillPath(pattern, input, globEscaper.Replace)
}

var globEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `,`, `\,`)

func fillPath(path string, input json.RawMessage, escape func(string) string) (string, error) {
	filled, missing, err := fill(path, input, func(name string, v any) (string, error) {
		s, err := pathValue(v)
		if err != nil {
			return "", fmt.Errorf("{{%s}} in the path %q: %w", name, path, err)
		}
		return escape(s), nil
	})
	switch {
	case err != nil:
		return "", err
	case len(missing) > 0:
		return "", fmt.Errorf("the path %q needs %s, which the input does not have; add it to the input", path, strings.Join(missing, ", "))
	case strings.HasPrefix(filled, "/") || strings.HasPrefix(filled, "~") || slices.Contains(strings.Split(filled, "/"), ".."):
		return "", fmt.Errorf("the path %q becomes %q, which is none inside the workspace; change the input", path, filled)
	}
	return filled, nil
}

// pathValue is a value as a part of a path.
func pathValue(v any) (string, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number, bool:
		s = fmt.Sprint(v)
	default:
		return "", fmt.Errorf("the input has no text, number or boolean there; give one")
	}
	switch {
	case strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, `\`):
		return "", fmt.Errorf("%q holds a backslash or a control character; leave it out", s)
	case !fs.ValidPath(s) || s == ".":
		return "", fmt.Errorf("%q can't be a part of a path; write no .., no empty part, and no slash at an end", s)
	}
	return s, nil
}

// fill replaces placeholders by what write makes of their fields. The first
// error of write is returned.
func fill(text string, input json.RawMessage, write func(name string, v any) (string, error)) (string, []string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil, nil
	}
	root, err := decodeExact(input)
	if err != nil {
		root = nil // an input that is no JSON has no fields
	}
	var missing []string
	var failed error
	filled := placeholder.ReplaceAllStringFunc(text, func(whole string) string {
		name := strings.TrimSpace(whole[2 : len(whole)-2])
		v, ok := field(root, name)
		if !ok {
			if !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
			return whole
		}
		s, err := write(name, v)
		if err != nil && failed == nil {
			failed = err
		}
		return s
	})
	return filled, missing, failed
}

// field finds a value by a dotted name; input. may stand before it.
func field(v any, name string) (any, bool) {
	if !fieldName.MatchString(name) {
		return nil, false
	}
	if found, ok := dig(v, name); ok {
		return found, true
	}
	if rest, ok := strings.CutPrefix(name, "input."); ok {
		return dig(v, rest)
	}
	return nil, false
}

func dig(v any, name string) (any, bool) {
	for part := range strings.SplitSeq(name, ".") {
		switch in := v.(type) {
		case map[string]any:
			below, ok := in[part]
			if !ok {
				return nil, false
			}
			v = below
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}
