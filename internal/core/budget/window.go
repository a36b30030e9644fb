package budget

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed windows.json
var builtInWindows []byte

// Windows knows how many tokens models take at most, input and output together.
// The zero Windows knows none. It never changes: it is safe for concurrent use.
type Windows struct {
	overrides, builtIn map[string]int
}

// NewWindows makes the table of the built-in windows and of overrides, which go
// before them. Keys are as New's.
func NewWindows(overrides map[string]int) (Windows, error) {
	var list struct {
		AsOf   string         `json:"asOf"`
		Note   string         `json:"note"`
		Tokens map[string]int `json:"tokens"`
	}
	dec := json.NewDecoder(bytes.NewReader(builtInWindows))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return Windows{}, fmt.Errorf("read the built-in windows: %w", err)
	}
	for _, windows := range []map[string]int{list.Tokens, overrides} {
		for pattern, tokens := range windows {
			switch {
			case !isPattern(pattern):
				return Windows{}, fmt.Errorf("window of %q: write provider/model, or provider/prefix* for all models that begin so", pattern)
			case tokens <= 0:
				return Windows{}, fmt.Errorf("window of %q: %d is no number of tokens; use one above 0", pattern, tokens)
			}
		}
	}
	return Windows{overrides: overrides, builtIn: list.Tokens}, nil
}

// Of is the window of provider/model: that of the override which matches most
// of the name, else the built-in one, else 0.
func (w Windows) Of(model string) int {
	if n, ok := match(w.overrides, model); ok {
		return n
	}
	n, _ := match(w.builtIn, model)
	return n
}
