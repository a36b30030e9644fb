package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands in the place of a secret.
const Mark = "[secret]"

// part is how much of a secret's beginning or end gives it away.
const part = 8

// forms are what keys look like. The first group, if there is one, is what
// stays. Each form has a piece of plain text that must be there before the
// expression is tried at all.
var forms = []struct {
	hint string
	form *regexp.Regexp
}{
	{"sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_*.\-]{8,}`)}, // OpenAI, Anthropic and who copies them; * and . where they are masked
	{"sk_", regexp.MustCompile(`\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}`)},
	{"AIza", regexp.MustCompile(`\bAIza[A-Za-z0-9_\-]{20,}`)},
	{"gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}`)},
	{"github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{"xox", regexp.MustCompile(`\bxox[abposr]-[A-Za-z0-9\-]{10,}`)},
	{"gsk_", regexp.MustCompile(`\bgsk_[A-Za-z0-9]{16,}`)},
	{"hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{16,}`)},
	{"AKIA", regexp.MustCompile(`\bAKIA[A-Z0-9]{16}\b`)},
	{"AGE-SECRET-KEY-", regexp.MustCompile(`AGE-SECRET-KEY-[A-Z0-9]{20,}`)},
	{"eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*`)},
	{"earer ", regexp.MustCompile(`([Bb]earer )[A-Za-z0-9._~+/=\-]{8,}`)},
	{"asic ", regexp.MustCompile(`([Bb]asic )[A-Za-z0-9+/=]{8,}`)},
	{"://", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.\-]*://[^\s/:@"']*:)[^\s/@"']+(?:@)`)},
	{"code=", regexp.MustCompile(`(login\?code=)[A-Za-z0-9_\-]+`)},
	{"goclaw", regexp.MustCompile(`(goclaw(?:-\d+)?=)[A-Za-z0-9_\-]{20,}`)},
}

// Redactor knows secrets. The zero value knows none.
type Redactor struct {
	mu    sync.Mutex
	known atomic.Pointer[[]string] // the longest first; never changed in place
}

// Add makes secrets known. Empty and short ones are not.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var known []string
	if old := r.known.Load(); old != nil {
		known = slices.Clone(*old)
	}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= part && !slices.Contains(known, s) {
			known = append(known, s)
		}
	}
	slices.SortStableFunc(known, func(a, b string) int { return len(b) - len(a) })
	r.known.Store(&known)
}

// Text returns s without secrets.
func (r *Redactor) Text(s string) string {
	if r != nil {
		if known := r.known.Load(); known != nil {
			for _, secret := range *known {
				s = withoutParts(strings.ReplaceAll(s, secret, Mark), secret)
			}
		}
	}
	for _, f := range forms {
		if strings.Contains(s, f.hint) {
			s = f.form.ReplaceAllStringFunc(s, func(found string) string {
				kept := ""
				if groups := f.form.FindStringSubmatch(found); len(groups) > 1 {
					kept = groups[1]
				}
				if strings.HasSuffix(found, "@") {
					return kept + Mark + "@"
				}
				return kept + Mark
			})
		}
	}
	return s
}

// withoutParts replaces the beginning and the end of a secret where they stand
// alone. A secret that is not much longer than a part has no parts.
func withoutParts(s, secret string) string {
	if len(secret) < 2*part {
		return s
	}
	for _, head := range []bool{true, false} {
		piece := secret[:part]
		if !head {
			piece = secret[len(secret)-part:]
		}
		for from := 0; ; {
			at := strings.Index(s[from:], piece)
			if at < 0 {
				break
			}
			start, end := grow(s, secret, from+at, head)
			s = s[:start] + Mark + s[end:]
			from = start + len(Mark)
		}
	}
	return s
}

// grow finds how much more of the secret stands there.
func grow(s, secret string, at int, head bool) (start, end int) {
	start, end = at, at+part
	if head {
		for n := part; end < len(s) && n < len(secret) && s[end] == secret[n]; n++ {
			end++
		}
		return start, end
	}
	for n := len(secret) - part - 1; start > 0 && n >= 0 && s[start-1] == secret[n]; n-- {
		start--
	}
	return start, end
}
