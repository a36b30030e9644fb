package workspace

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"goclaw"
)

// clean makes text of a file's bytes: no byte order mark, lines that end in
// \n, valid UTF-8.
func clean(data []byte) (text, warning string) {
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) {
		return "", "is UTF-16; it was not read; save it as UTF-8"
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", "holds zero bytes and is no text; it was not read"
	}
	text = string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if !utf8.ValidString(text) {
		bad := 0
		for i, r := range text {
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
				bad++
			}
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		warning = fmt.Sprintf("is not UTF-8: %d bytes were replaced; save it as UTF-8", bad)
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), warning
}

// cut shortens the file's content to at most most characters, of which the
// head gets three quarters. total says that the cap is what the other files
// left over.
func cut(f *goclaw.WorkspaceFile, most int, total bool) {
	n := chars(f.Content)
	if n <= most {
		return
	}
	limit := "context.fileMaxChars"
	if total {
		limit = "context.totalMaxChars"
	}
	// The marker is as long as it can get, so that the result fits.
	room := most - len(marker(f.Name, n))
	if room < 0 {
		f.Content, f.Dropped = "", n
		warn(f, fmt.Sprintf("was left out: its %d characters don't fit (%s); shorten it or raise the cap", n, limit))
		return
	}
	r := []rune(f.Content)
	head := room * 3 / 4
	tail := room - head
	f.Dropped = n - room
	f.Content = string(r[:head]) + marker(f.Name, f.Dropped) + string(r[n-tail:])
	warn(f, fmt.Sprintf("was cut: %d of its %d characters were dropped from the middle (%s); shorten it or raise the cap", f.Dropped, n, limit))
}

func marker(name string, dropped int) string {
	return fmt.Sprintf("\n\n[... %d characters of %s dropped here ...]\n\n", dropped, name)
}

func chars(s string) int { return utf8.RuneCountInString(s) }

func warn(f *goclaw.WorkspaceFile, text string) {
	if f.Warning != "" {
		f.Warning += "; "
	}
	f.Warning += text
}
