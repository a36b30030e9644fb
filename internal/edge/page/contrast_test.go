package page_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var (
	themes  = regexp.MustCompile(`(?s)(:root[^{]*)\{([^{}]*--bg:[^{}]*)\}`)
	colours = regexp.MustCompile(`--(\w+): #([0-9a-f]{3}|[0-9a-f]{6});`)
)

// luminance is WCAG's, of a colour as hexadecimal digits.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// Text can be read on every ground that it stands on, in light and in dark.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("assets/css/base.css")
	if err != nil {
		t.Fatal(err)
	}
	found := themes.FindAllStringSubmatch(string(css), -1)
	if len(found) != 3 {
		t.Fatalf("%d themes, want light, the system's dark and the chosen dark", len(found))
	}
	if a, b := colours.FindAllString(found[1][2], -1), colours.FindAllString(found[2][2], -1); len(a) < 10 || len(a) != len(b) {
		t.Errorf("the two dark themes have %d and %d colours", len(a), len(b))
	}
	for _, theme := range found {
		c := map[string]string{}
		for _, m := range colours.FindAllStringSubmatch(theme[2], -1) {
			c[m[1]] = m[2]
		}
		for text, grounds := range map[string][]string{
			"ink": {"bg", "raised", "sunk", "tint"}, "ink2": {"bg", "raised", "sunk"}, "ink3": {"bg", "raised", "sunk"},
			"accent": {"bg", "raised", "tint"}, "onaccent": {"accent"}, "run": {"bg", "raised", "runtint"},
			"bad": {"bg", "raised", "badtint"}, "warn": {"bg", "raised", "warntint"},
		} {
			for _, ground := range grounds {
				a, b := luminance(t, c[text]), luminance(t, c[ground])
				if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want 4.5", theme[1], text, ground, ratio)
				}
			}
		}
	}
}
