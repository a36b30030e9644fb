package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
	"goclaw"
)

// ref is a name in the file that something else must know.
type ref struct {
	kind  string // model, tool, section, agent (a use of an id), id (its definition)
	value string
	key   string
	at    place
}

// source remembers where a Config came from, for problems found later.
type source struct {
	path string
	refs []ref
}

// text checks a string by its tags and stores it.
func (d *decoder) text(v hujson.Value, s string, to slot, key string) {
	to.dst.SetString(s)
	secret := to.dst.Type() == reflect.TypeFor[Secret]()
	if strings.TrimSpace(s) == "" {
		d.problem(v.StartOffset, "give it a value or leave the key out", "%s is empty", key)
		return
	}
	if enum := to.tag.Get("enum"); enum != "" {
		if known := strings.Split(enum, ","); !slices.Contains(known, s) {
			d.problem(v.StartOffset, "use one of "+strings.Join(known, ", "), "%s is %q", key, s)
		}
		if kind := to.tag.Get("ref"); kind != "" {
			d.refs = append(d.refs, ref{kind, s, key, placeAt(d.src, v.StartOffset)})
		}
		return
	}
	if secret {
		d.secret(v, s, to, key)
		return
	}
	d.format(v, s, to, key)
}

// sealed reads a secret, or the name of one that is kept elsewhere.
func (d *decoder) sealed(v hujson.Value, to slot, key string) {
	value, name := to.dst.Field(0), to.dst.Field(1)
	if v.Value.Kind() != '{' {
		if lit, ok := d.literal(v, key, '"', `a string or {"secret": NAME}`, "put it in double quotes"); ok {
			d.text(v, lit.String(), slot{value, to.tag}, key)
		}
		return
	}
	members, _ := d.members(v, key)
	for _, m := range members {
		at := join(key, nameOf(m))
		if nameOf(m) != secretKey {
			d.problem(m.Name.StartOffset, `write {"secret": NAME}`, "unknown key %s", strconv.Quote(at))
		} else if lit, ok := d.literal(m.Value, at, '"', "a string", "put it in double quotes"); ok {
			d.text(m.Value, lit.String(), slot{name, `format:"secret"`}, at)
		}
	}
	if len(members) == 0 {
		d.problem(v.StartOffset, `write {"secret": NAME}`, "%s names no secret", key)
	}
}

func (d *decoder) secret(v hujson.Value, s string, to slot, key string) {
	d.clear = append(d.clear, clearText{key, v.StartOffset, v.EndOffset})
	database := to.tag.Get("format") == "postgres"
	switch {
	case strings.Contains(s, "${") && database:
		d.problem(v.StartOffset, "write the address itself, or set "+databaseVar, "%s: environment variables are not expanded here", key)
	case strings.Contains(s, "${"):
		d.problem(v.StartOffset, "write the value itself; apiKeyEnv takes a variable's name", "%s: environment variables are not expanded here", key)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), strings.TrimSpace(s) != s:
		d.problem(v.StartOffset, "remove them", "%s holds spaces at its ends or control characters", key)
	case database && !isPostgres(s):
		d.problem(v.StartOffset, "write postgres://USER@HOST/DATABASE", "%s is no address of a PostgreSQL database", key)
	}
}

// isPostgres reports whether s can be the address of a PostgreSQL database.
func isPostgres(s string) bool {
	_, err := url.Parse(s)
	return err == nil && (strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://"))
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// format checks what the tag format names, and makes paths absolute.
func (d *decoder) format(v hujson.Value, s string, to slot, key string) {
	format := to.tag.Get("format")
	switch format {
	case "secret":
		if goclaw.CheckAgentID(s) != nil {
			// Not quoted: it may be the key itself.
			d.problem(v.StartOffset, "write the name that goclaw secrets list shows", "%s is no name of a secret", key)
		}
	case "id":
		if err := goclaw.CheckAgentID(s); err != nil {
			d.problem(v.StartOffset, "choose another name", "%s: %v", key, err)
		}
	case "path":
		abs, err := d.absolute(s)
		if err != nil {
			d.problem(v.StartOffset, "write the whole path", "%s: %v", key, err)
			return
		}
		to.dst.SetString(abs)
		return
	case "provider/model":
		if !isModel(s) {
			d.problem(v.StartOffset, "write provider/model, such as anthropic/claude-sonnet-5-5", "%s is %q", key, s)
		}
		format = "model"
	case "url":
		d.url(v, s, key)
	case "zone":
		d.zone(v, s, key)
	case "file", "reach", "docs":
		d.inWorkspace(v, s, to, key)
	case "duration":
		d.duration(v, s, key)
	case "clock":
		d.clock(v, s, key)
	case "session":
		d.session(v, s, key)
	case "command":
		d.program(v, s, to, key)
	case "host":
		d.host(v, s, key)
	case "line":
		if strings.ContainsFunc(s, unicode.IsControl) {
			d.problem(v.StartOffset, "write it in one line", "%s holds line breaks or control characters", key)
		}
	case "env":
		if !envName.MatchString(s) {
			// Not quoted: it may be the key itself.
			d.problem(v.StartOffset, "write the variable's name, such as ANTHROPIC_API_KEY (the key itself goes into apiKey)",
				"%s is not the name of an environment variable", key)
		}
	case "addr":
		_, port, err := net.SplitHostPort(s)
		if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
			d.problem(v.StartOffset, "write HOST:PORT, such as 127.0.0.1:8080", "%s is %q", key, s)
		}
	}
	if format == "id" || format == "secret" || format == "model" || format == "tool" || format == "agent" {
		d.refs = append(d.refs, ref{format, s, key, placeAt(d.src, v.StartOffset)})
	}
}

// absolute resolves ~ and what is relative to the file's folder.
func (d *decoder) absolute(p string) (string, error) {
	if rest, ok := strings.CutPrefix(p, "~"); ok {
		if rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
			return "", fmt.Errorf("%q: the home of another user is not looked up", p)
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%q: %w", p, err)
		}
		return filepath.Join(home, rest), nil
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p), nil
	}
	return filepath.Join(d.dir, p), nil
}

// url refuses an address that can't be called or that holds a password; it
// never quotes it.
func (d *decoder) url(v hujson.Value, s, key string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		d.problem(v.StartOffset, "write http://… or https://…", "%s is no web address", key)
	case u.User != nil:
		d.problem(v.StartOffset, "use apiKey, apiKeyEnv or headers", "%s holds a user name or password", key)
	case u.RawQuery != "" || u.Fragment != "":
		d.problem(v.StartOffset, "remove what follows ? or #", "%s has a query or a fragment", key)
	}
}

var (
	headerName   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	pricePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}/(\*|[^\s*]+\*?)$`)
)

// tableKey checks a free key.
func (d *decoder) tableKey(m hujson.ObjectMember, kind, key string) {
	name := nameOf(m)
	switch {
	case kind == "header" && !headerName.MatchString(name):
		d.problem(m.Name.StartOffset, "use letters, digits and -", "%s: %q is no header's name", key, name)
	case kind == "alias" && (name == "" || strings.ContainsAny(name, "/ \t\n")):
		d.problem(m.Name.StartOffset, "choose a name without / and spaces", "%s: %q is no alias", key, name)
	case kind == "price" && !pricePattern.MatchString(name):
		d.problem(m.Name.StartOffset, "write provider/model, or provider/prefix* for all models that begin so", "%s: %q names no model", key, name)
	case kind == "section":
		d.refs = append(d.refs, ref{kind, name, key, placeAt(d.src, m.Name.StartOffset)})
	}
}

func isModel(s string) bool {
	provider, model, ok := strings.Cut(s, "/")
	return ok && goclaw.CheckAgentID(provider) == nil && model != "" && strings.TrimSpace(s) == s
}

// check finds what is wrong between the parts of a file.
func (d *decoder) check(cfg *Config) {
	cfg.Context.Files = inOrder(cfg.Context.Files)
	defined := map[string]place{}
	for _, r := range d.refs {
		if r.kind != "id" || !strings.HasPrefix(r.key, "agents.") {
			continue
		}
		if first, twice := defined[r.value]; twice && !strings.HasPrefix(r.key, "agents.entries."+r.value+".") {
			d.refProblem(r, "remove one of them", "the agent %q is defined here and in line %d", r.value, first.line)
			continue
		}
		defined[r.value] = r.at
	}
	for _, r := range d.refs {
		switch r.kind {
		case "model":
			if _, err := cfg.ResolveModel(r.value); err != nil && !strings.HasPrefix(r.key, "models.aliases.") {
				d.refProblem(r, "write provider/model or one of models.aliases"+aliasHint(cfg, r.value), "%s: %q is neither", r.key, r.value)
			}
		case "agent":
			if _, ok := defined[r.value]; !ok && r.value != "*" && r.value != DefaultAgent {
				d.refProblem(r, "add it to agents.list, or write * for any", "%s: there is no agent %q", r.key, r.value)
			}
		}
	}
	d.heartbeats(cfg)
	for _, r := range d.refs {
		switch {
		case r.kind == "id" && strings.HasPrefix(r.key, "models.providers."):
			d.provider(cfg, r)
		case r.kind == "search":
			d.webSearch(cfg, r)
		}
	}
}

func aliasHint(cfg *Config, name string) string {
	var known []string
	for alias := range cfg.Models.Aliases {
		known = append(known, alias)
	}
	slices.Sort(known)
	if near := nearest(name, known); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// provider checks one provider as a whole, and gives it the kind that its name
// says.
func (d *decoder) provider(cfg *Config, r ref) {
	i := slices.IndexFunc(cfg.Models.Providers, func(p Provider) bool { return p.Name == r.value })
	p := &cfg.Models.Providers[i]
	switch {
	case p.Name == demoName:
		d.refProblem(r, "choose another name", "%s: demo is the built-in offline demonstration", r.key)
	case p.Kind == "" && (p.Name == kindAnthropic || p.Name == kindOpenAI):
		p.Kind = p.Name
	case p.Kind == "":
		d.refProblem(r, "add it: anthropic, or openai for everything that speaks its API", "%s.kind is missing", r.key)
	}
	if !p.APIKey.IsZero() && p.APIKeyEnv != "" {
		d.refProblem(r, "remove one of them", "%s has both apiKey and apiKeyEnv", r.key)
	}
}

func (d *decoder) refProblem(r ref, hint, what string, args ...any) {
	d.problems = append(d.problems, Problem{
		Path: d.path, Line: r.at.line, Col: r.at.col, What: fmt.Sprintf(what, args...), Hint: hint,
	})
}

// Known are the names that only other packages know.
type Known struct {
	Tools     []string
	Providers []string // that models may come from, the configured ones included
	Sections  []string // of prompts, by id; nil: not checked
}

// Check reports, with their places, the tools, providers and sections that the
// file names and that do not exist. The error is of type Problems.
func (c Config) Check(known Known) error {
	var ps Problems
	add := func(r ref, hint, what string, args ...any) {
		ps = append(ps, Problem{c.source.path, r.at.line, r.at.col, fmt.Sprintf(what, args...), hint})
	}
	for _, r := range c.source.refs {
		switch r.kind {
		case "tool":
			if r.value != "*" && !slices.Contains(known.Tools, r.value) {
				add(r, suggestion(r.value, known.Tools), "%s: there is no tool %q", r.key, r.value)
			}
		case "section":
			if known.Sections != nil && !slices.Contains(known.Sections, r.value) {
				add(r, suggestion(r.value, known.Sections), "%s: there is no section %q", r.key, r.value)
			}
		case "model":
			model, err := c.ResolveModel(r.value)
			if err != nil {
				continue // found by Load
			}
			if p, _, _ := strings.Cut(model, "/"); !slices.Contains(known.Providers, p) {
				add(r, "add it to models.providers, or use one of "+strings.Join(known.Providers, ", "), "%s: there is no provider %q", r.key, p)
			}
		}
	}
	return ps.errorOrNil()
}

func suggestion(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "use one of " + strings.Join(known, ", ")
}
