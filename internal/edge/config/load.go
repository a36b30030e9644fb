package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tailscale/hujson"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of goclaw.json.
func Schema() []byte { return bytes.Clone(schema) }

// maxBytes bounds the file, and with it how deep its values can nest.
const maxBytes = 256 << 10

// Load reads the configuration file at path. If there is none it returns
// Default and an error that wraps os.ErrNotExist: the caller knows whether the
// file was asked for. Any other error means that the Config must not be used;
// what is wrong inside the file comes as Problems, all at once.
func Load(path string) (Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Default(), fmt.Errorf("read config: %w", err)
	}
	data, err := readFile(abs)
	if err != nil {
		return Default(), fmt.Errorf("read config: %w", err)
	}
	return parse(path, filepath.Dir(abs), data)
}

func readFile(path string) (data []byte, err error) {
	// Opening a pipe must not wait for its other end.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	data, err = io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d KB", path, maxBytes>>10)
	}
	return data, nil
}

// parse reads data as the file at path; dir is what its relative paths are
// relative to.
func parse(path, dir string, data []byte) (Config, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	root, err := hujson.Parse(data)
	if err != nil {
		return Default(), Problems{syntaxProblem(path, data, err)}
	}
	d := decoder{path: path, dir: dir, src: data}
	cfg := Default()
	d.value(root, target(&cfg), "")
	d.check(&cfg)
	if err := d.problems.errorOrNil(); err != nil {
		return Default(), err
	}
	cfg.source = source{path: path, refs: d.refs}
	return cfg, nil
}

// syntaxProblem words a parser's error without quoting the file: the text at
// fault may be a key that lacks its quotes.
func syntaxProblem(path string, data []byte, err error) Problem {
	p := Problem{Path: path, Line: 1, Col: 1}
	msg := strings.TrimPrefix(err.Error(), "hujson: ")
	if where, rest, ok := strings.Cut(msg, ": "); ok {
		line, col := "", ""
		if line, col, ok = strings.Cut(strings.TrimPrefix(where, "line "), ", column "); ok {
			p.Line, _ = strconv.Atoi(line)
			p.Col, _ = strconv.Atoi(col)
			p.Col = columnInCharacters(data, p.Line, p.Col)
			msg = rest
		}
	}
	atEnd := errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		p.What, p.Hint = "the file is empty", "write {} for a configuration without settings, or remove the file"
	case atEnd && strings.Contains(msg, "string"):
		p.What, p.Hint = "a string is not closed", `end it with "`
	case atEnd && strings.Contains(msg, "comment"):
		p.What, p.Hint = "a comment is not closed", "end it with */ or a new line"
	case atEnd:
		p.What, p.Hint = "the file ends too early", "close every { with } and every [ with ]"
	case strings.Contains(msg, "after object value"), strings.Contains(msg, "after array value"):
		p.What, p.Hint = "a comma is missing before this, or a bracket is wrong", "put a comma between two values, and close { with } and [ with ]"
	case strings.Contains(msg, "after object name"):
		p.What, p.Hint = "a colon is missing", `write "key": value`
	case strings.Contains(msg, "object name"):
		p.What, p.Hint = "a key must be in double quotes", `write "key": value`
	case strings.Contains(msg, "after top-level value"):
		p.What, p.Hint = "something follows the closing bracket", "remove it"
	case strings.Contains(msg, "UTF-8"):
		p.What, p.Hint = "the file is not UTF-8", "save it as UTF-8"
	default:
		p.What, p.Hint = "this is no JSON value", "put text in double quotes; other values are numbers, true, false, [lists] and {objects}"
	}
	return p
}

// columnInCharacters turns a column in bytes into one in characters.
func columnInCharacters(data []byte, line, col int) int {
	start := 0
	for range line - 1 {
		start += bytes.IndexByte(data[start:], '\n') + 1
	}
	return placeAt(data, start+col-1).col
}
