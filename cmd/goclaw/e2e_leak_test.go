package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// leaks names the secrets that a text holds: plain, reversed, rotated, or
// encoded in a common way, also when it is cut into columns or compressed.
func (w *spyWorld) leaks(text string) []string {
	var where []string
	hay := append(unpacked(text), text)
	for name, s := range w.secrets {
		forms := secretForms(s)
		for _, h := range hay {
			if slices.ContainsFunc(forms, func(f string) bool { return strings.Contains(h, f) }) {
				where = append(where, name)
				break
			}
		}
	}
	slices.Sort(where)
	return where
}

// secretForms are the texts by which a secret would be recognised.
func secretForms(s string) []string {
	var forms []string
	const window = 12 // as much as a line of a dump shows
	for i := 0; i+window <= len(s); i++ {
		part := s[i : i+window]
		back := []byte(part)
		slices.Reverse(back)
		forms = append(forms, part, strings.ToUpper(part), string(back), strings.Map(rot13, part), hex.EncodeToString([]byte(part)))
	}
	return forms
}

func rot13(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case r >= 'A' && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/]{16,}`)
	base32Run = regexp.MustCompile(`[A-Z2-7]{16,}`)
)

// unpacked returns the text without spaces, and all that it may encode.
func unpacked(text string) []string {
	dense := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	out := []string{dense, strings.ToLower(dense)}
	decode := func(runs []string, group int, decode func(string) ([]byte, error)) {
		for _, run := range runs {
			for skip := range group {
				part := run[min(skip, len(run)):]
				raw, _ := decode(part[:len(part)/group*group])
				out = append(out, string(raw), gunzipped(raw))
			}
		}
	}
	for _, t := range []string{text, dense} {
		decode(base64Run.FindAllString(t, -1), 4, base64.StdEncoding.DecodeString)
		decode(base32Run.FindAllString(t, -1), 8, base32.StdEncoding.DecodeString)
	}
	return out
}

// gunzipped is what a gzip stream in raw holds, as far as it goes.
func gunzipped(raw []byte) string {
	at := bytes.Index(raw, []byte{0x1f, 0x8b, 8})
	if at < 0 {
		return ""
	}
	z, err := gzip.NewReader(bytes.NewReader(raw[at:]))
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(z, 16<<20)) // a cut stream gives its head
	return string(text)
}

// TestLeaks: the detector itself.
func TestLeaks(t *testing.T) {
	t.Parallel()
	const secret = "abcdefghijklmnopqrst"
	w := &spyWorld{secrets: map[string]string{"s": secret}}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("a file with " + secret + " in it"))
	_ = z.Close()
	raw := []byte("x\ny: " + secret + ".")
	spaced := hex.EncodeToString(raw)
	for i := len(spaced) - 2; i > 0; i -= 2 {
		spaced = spaced[:i] + " " + spaced[i:]
	}
	for name, text := range map[string]string{
		"plain": "see " + secret, "hex": hex.EncodeToString(raw), "spaced hex": spaced,
		"base64": base64.StdEncoding.EncodeToString(raw), "in a text": "result:\n" + base64.StdEncoding.EncodeToString(raw[1:]) + "\n[exit]",
		"base32": base32.StdEncoding.EncodeToString(raw), "gzip": base64.StdEncoding.EncodeToString(zipped.Bytes()),
		"columns": "a b c d e f g h\ni j k l m n o p", "rotated": strings.Map(rot13, secret), "upper": strings.ToUpper(secret),
	} {
		if len(w.leaks(text)) != 1 {
			t.Errorf("%s: %q is not seen", name, text)
		}
	}
	if found := w.leaks("nothing at all, abcdefgh"); len(found) != 0 {
		t.Errorf("seen in nothing: %v", found)
	}
}
