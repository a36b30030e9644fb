package slices

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/core/typed"
)

var (
	placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\s*\}\}`)
	patternMeta = regexp.MustCompile(`[*?\[\]{}!\\]`)
)

// fill puts values of the input in the place of {{name}}, {{name.of.it}},
// {{list.0}} or {{input.name}}. In a glob they are taken literally.
func (a *assembler) fill(text string, glob bool) (string, error) {
	var failed error
	const open, shut = "\x00", "\x01" // stand for what is no placeholder
	if strings.ContainsAny(text, open+shut) {
		return "", refuse("remove them", "the name holds control characters")
	}
	rest := placeholder.ReplaceAllString(text, "")
	if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") && !glob {
		return "", refuse("write {{name}} with the name of a field of the input", "%q holds a placeholder that is none", text)
	}
	filled := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := placeholder.FindStringSubmatch(found)[1]
		value, err := a.value(name)
		if err != nil && failed == nil {
			failed = err
		}
		if glob {
			value = patternMeta.ReplaceAllString(value, `\$0`)
		}
		return value
	})
	return filled, failed
}

// value is a field of the input as part of a path.
func (a *assembler) value(name string) (string, error) {
	v, ok := typed.Field(a.input, name)
	if !ok || v == nil {
		return "", missing("the input has no field %s", name)
	}
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	case bool:
		text = map[bool]string{true: "true", false: "false"}[v]
	default:
		return "", refuse("name a text or a number", "{{%s}} is a list or an object", name)
	}
	if strings.TrimSpace(text) == "" {
		return "", missing("the field %s of the input is empty", name)
	}
	if err := local(text); err != nil {
		return "", refuse("give a name inside the workspace", "{{%s}} is %q, which leads out of the workspace or is no name", name, text)
	}
	return text, nil
}

// local refuses what is no path inside the workspace.
func local(name string) error {
	control := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
	if name == "" || len(name) > 4096 || control || path.IsAbs(name) || strings.HasPrefix(name, "~") ||
		slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }), "..") ||
		len(name) > 1 && name[1] == ':' {
		return refuse("name a file inside the workspace, with slashes", "%q is no path inside the workspace", name)
	}
	return nil
}
