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

// FillGlob replaces {{name}} and {{a.b}} in a pattern of files by fields of the
// input (Field). What is filled in matches itself and is not looked through
// again. Values must be texts, numbers or booleans, and can't lead anywhere but
// down: one with "..", an empty part, a backslash, a control character, or a
// slash at an end is refused, and so is a pattern that is none inside the
// workspace once it is filled.
func FillGlob(pattern string, input json.RawMessage) (string, error) {
	filled, missing, err := fill(pattern, input, func(name string, v any) (string, error) {
		s, err := pathValue(v)
		if err != nil {
			return "", fmt.Errorf("{{%s}} in the path %q: %w", name, pattern, err)
		}
		return globEscaper.Replace(s), nil
	})
	switch {
	case err != nil:
		return "", err
	case len(missing) > 0:
		return "", fmt.Errorf("the path %q needs %s, which the input does not have; add it to the input", pattern, strings.Join(missing, ", "))
	case strings.HasPrefix(filled, "/") || strings.HasPrefix(filled, "~") || slices.Contains(strings.Split(filled, "/"), ".."):
		return "", fmt.Errorf("the path %q becomes %q, which is none inside the workspace; change the input", pattern, filled)
	}
	return filled, nil
}

var globEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `,`, `\,`)

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
		v, ok := Field(root, name)
		if !ok || !fieldName.MatchString(name) {
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

// Field finds a value in an input by a dotted name, in which a number is a place
// in a list; input. may stand before it.
func Field(input any, name string) (any, bool) {
	if found, ok := dig(input, name); ok {
		return found, true
	}
	if rest, ok := strings.CutPrefix(name, "input."); ok {
		return dig(input, rest)
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
