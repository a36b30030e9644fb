package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

func (c *call) edit(ctx context.Context, a editArgs) (string, error) {
	if err := c.refuseShelf(a.Path); err != nil {
		return "", err
	}
	dir, name, err := c.locate(a.Path)
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	defer dir.Close()
	if err := c.reach.AllowChange(path.Join(dir.Path, name)); err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	defer c.seen.lock(c.key(dir, name))()
	data, info, err := load(dir, name)
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	if err := c.checkSeen(a.Path, dir, name, data); err != nil {
		return "", err
	}
	if isBinary(data[:min(len(data), sniffBytes)]) {
		return "", notText(a.Path, data[:min(len(data), sniffBytes)], info.Size())
	}
	out, lines, err := substitute(string(data), a.Old, a.New, a.All)
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := c.replace(dir, name, []byte(out), info.Mode()); err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	if len(lines) == 1 {
		return fmt.Sprintf("edited %s at line %d", a.Path, lines[0]), nil
	}
	return fmt.Sprintf("edited %s: %d replacements, at lines %s", a.Path, len(lines), listLines(lines)), nil
}

// substitute replaces old by new in text and returns the lines where it did.
// In a text with CRLF line ends, old and new may be written with LF.
func substitute(text, old, replacement string, all bool) (string, []int, error) {
	if old == "" {
		return "", nil, errors.New("old is empty; give the text to replace, or use write")
	}
	if old == replacement {
		return "", nil, errors.New("old and new are the same; nothing to do")
	}
	if n := strings.Count(text, "\r\n"); n > 0 {
		if !strings.Contains(text, old) {
			old = toCRLF(old)
		}
		if n == strings.Count(text, "\n") {
			replacement = toCRLF(replacement)
		}
	}
	lines := occurrences(text, old)
	switch {
	case len(lines) == 0:
		return "", nil, errors.New(missHint(text, old))
	case len(lines) > 1 && !all:
		return "", nil, fmt.Errorf("old occurs %d times, at lines %s; add surrounding lines to make it unique, or set all", len(lines), listLines(lines))
	}
	return strings.ReplaceAll(text, old, replacement), lines, nil
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// occurrences returns the line of each place where old stands in text.
func occurrences(text, old string) []int {
	var lines []int
	line := 1
	for {
		i := strings.Index(text, old)
		if i < 0 {
			return lines
		}
		line += strings.Count(text[:i], "\n")
		lines = append(lines, line)
		line += strings.Count(old, "\n")
		text = text[i+len(old):]
	}
}

// listLines names at most ten lines.
func listLines(lines []int) string {
	const most = 10
	var b strings.Builder
	for i, n := range lines {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(lines)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// numbered matches text pasted with the line numbers that read adds.
var numbered = regexp.MustCompile(`^(\d+\t[^\n]*(\n|$))+$`)

// missHint says why old may not be in text.
func missHint(text, old string) string {
	if numbered.MatchString(old) {
		return "old was not found: leave out the line numbers that read adds"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(old), "\n")
	first = strings.TrimSpace(first)
	best, bestScore, bestLine := 0, 0.0, ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == first && first != "" {
			return fmt.Sprintf("old was not found, but line %d begins like it: %s; check the whitespace and the lines after it", i+1, quote(line))
		}
		if s := similarity(first, trimmed); s > bestScore {
			best, bestScore, bestLine = i+1, s, line
		}
	}
	if bestScore < 0.4 {
		return "old was not found, nor anything like it; read the file again"
	}
	return fmt.Sprintf("old was not found; the closest line is %d: %s", best, quote(bestLine))
}

func quote(line string) string {
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return strconv.Quote(strings.TrimSuffix(line, "\r"))
}

// similarity is the share of common letter pairs, from 0 to 1.
func similarity(a, b string) float64 {
	const most = 400
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int, len(a))
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := range len(b) - 1 {
		p := [2]byte{b[i], b[i+1]}
		if pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}
