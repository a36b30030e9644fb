package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"
)

// clearText is a secret that stands in the file as it is, by its place.
type clearText struct {
	key        string
	start, end int
}

// Withhold returns the configuration file at path without the secrets that stand
// in it in clear, and their keys. Each is replaced by an empty string, which no
// configuration may hold: whoever uses the result learns what is missing.
func Withhold(path string) (data []byte, keys []string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read config: %w", err)
	}
	if data, err = readFile(abs); err != nil {
		return nil, nil, fmt.Errorf("read config: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, nil, Problems{syntaxProblem(path, data, err)}
	}
	d := decoder{path: path, dir: filepath.Dir(abs), src: data}
	cfg := Default()
	d.value(root, target(&cfg), "")
	slices.SortFunc(d.clear, func(a, b clearText) int { return a.start - b.start })
	var kept []byte
	from := 0
	for _, c := range d.clear {
		kept = append(append(kept, data[from:c.start]...), `""`...)
		from = c.end
		keys = append(keys, c.key)
	}
	return append(kept, data[from:]...), keys, nil
}
