package web

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// textKinds are media types of text beside text/*, +json and +xml.
var textKinds = [...]string{
	"application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
	"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl",
	"application/x-sh", "application/sql", "application/graphql", "application/x-www-form-urlencoded",
}

func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return true
	}
	for _, k := range textKinds {
		if k == kind {
			return true
		}
	}
	return false
}

func isHTML(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }

// decode makes the text of a body whose type was declared.
func (p *page) decode(ctx context.Context, body []byte, declared string) error {
	if !isText(p.kind) {
		p.binary = true
		return nil
	}
	text, err := decoded(body, declared)
	if err != nil {
		return err
	}
	if strings.ContainsRune(text[:min(len(text), 1024)], 0) { // text by its type only
		p.binary = true
		return nil
	}
	if isHTML(p.kind) {
		p.title, text, err = markdown(ctx, text, p.url)
		if err != nil {
			return err
		}
	}
	p.text = strings.TrimSpace(clean(text))
	return nil
}

// decoded is body as UTF-8. What is UTF-8 as a whole is taken as such, unless
// its type or its first bytes say otherwise for certain.
func decoded(body []byte, declared string) (string, error) {
	encoding, name, certain := charset.DetermineEncoding(body, declared)
	// ISO-2022-JP is made of ASCII, and so always UTF-8 as well.
	if whole := trimmed(body); !certain && name != "iso-2022-jp" && utf8.Valid(whole) {
		return string(whole), nil
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		return "", err
	}
	return string(bytes.TrimPrefix(text, []byte("\uFEFF"))), nil
}

// trimmed is body without the beginning of a character that was cut.
func trimmed(body []byte) []byte {
	for i := len(body) - 1; i >= max(0, len(body)-utf8.UTFMax); i-- {
		if utf8.RuneStart(body[i]) {
			if !utf8.FullRune(body[i:]) {
				return body[:i]
			}
			break
		}
	}
	return body
}
