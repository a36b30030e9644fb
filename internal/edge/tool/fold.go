package tool

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// fold maps every spelling under which some file system would find a name to
// one key. It may map more together than a given file system does, never less.
func fold(rel string) string {
	parts := strings.Split(rel, "/")
	for i, p := range parts {
		parts[i] = foldName(p)
	}
	return strings.Join(parts, "/")
}

func foldName(name string) string {
	if isPlain(name) {
		return strings.ToLower(name)
	}
	name = norm.NFKD.String(name)
	name = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, name)
	name = norm.NFKC.String(name)
	if stem, _, stream := strings.Cut(name, ":"); stream && stem != "" {
		name = stem
	}
	if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
		return trimmed
	}
	return name
}

// isPlain reports whether folding name is a matter of ASCII case alone.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c == ':' || c < ' ' {
			return false
		}
	}
	return !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ")
}
