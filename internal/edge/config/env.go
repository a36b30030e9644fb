package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

const (
	kindAnthropic = "anthropic"
	kindOpenAI    = "openai"
	demoName      = "demo"
)

// Endpoint is a model API that can be called, or that can't and says why.
type Endpoint struct {
	Name         string // what stands before the / of its models
	Kind         string // anthropic, openai or demo: the API that it speaks
	BaseURL      string // "" for the vendor's own address
	APIKey       Secret
	KeyFrom      string // where the key comes from; "" if there is none
	KeyInClear   bool   // it stands in the configuration file
	Headers      map[string]Secret
	Models       []string // without the prefix; nil: any name is passed on
	DefaultModel string   // provider/model; "" if it must be chosen
	Note         string   // where it comes from, or why it is unsupported
	Unsupported  bool     // it can't be used: Note says why and what to do

	IdleTimeout time.Duration // 0: the provider's own
}

// Endpoints lists the providers of the file and of the environment, the
// preferred first: those of the file in its order, then what FromEnv finds
// under other names.
func (c Config) Endpoints(getenv func(string) string, probe func(baseURL string) (models []string, ok bool), secrets Secrets) []Endpoint {
	var all []Endpoint
	taken := map[string]bool{}
	for _, p := range c.Models.Providers {
		taken[p.Name] = true
		all = append(all, p.endpoint(getenv, secrets))
	}
	for _, e := range FromEnv(getenv, probe) {
		if !taken[e.Name] {
			all = append(all, e)
		}
	}
	return all
}

func (p Provider) endpoint(getenv func(string) string, secrets Secrets) Endpoint {
	e := Endpoint{
		Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL,
		Models: p.Models, Note: "from the configuration file",
		IdleTimeout: time.Duration(p.IdleTimeoutSeconds) * time.Second,
	}
	switch {
	case len(p.Models) > 0:
		e.DefaultModel = p.Name + "/" + p.Models[0]
	case p.Name == kindAnthropic || p.Name == kindOpenAI:
		e.DefaultModel = defaultModel(p.Name)
	}
	if err := p.openInto(&e, getenv, secrets); err != nil {
		e.Unsupported, e.Note = true, err.Error()
	}
	return e
}

// openInto finds the provider's key and headers.
func (p Provider) openInto(e *Endpoint, getenv func(string) string, secrets Secrets) (err error) {
	fromEnv := func(name string) {
		if e.APIKey = Secret(getenv(name)); e.APIKey != "" {
			e.KeyFrom = "the environment variable " + name
		}
	}
	usual := strings.ToUpper(p.Kind) + "_API_KEY"
	switch {
	case p.APIKeyEnv != "":
		if fromEnv(p.APIKeyEnv); e.APIKey == "" {
			return fmt.Errorf("the environment variable %s, which models.providers.%s.apiKeyEnv names, is empty; set it", p.APIKeyEnv, p.Name)
		}
	case !p.APIKey.IsZero():
		if e.APIKey, e.KeyFrom, err = p.APIKey.open(secrets); err != nil {
			return fmt.Errorf("models.providers.%s.apiKey: %w", p.Name, err)
		}
		e.KeyInClear = p.APIKey.Value != ""
	case p.BaseURL == "":
		// The vendor's own address without a key: the usual variable.
		if fromEnv(usual); e.APIKey == "" {
			return fmt.Errorf("models.providers.%s has no key; goclaw setup stores one, or set apiKeyEnv or %s", p.Name, usual)
		}
	}
	for name, sealed := range p.Headers {
		value, _, err := sealed.open(secrets)
		if err != nil {
			return fmt.Errorf("models.providers.%s.headers.%s: %w", p.Name, name, err)
		}
		if e.Headers == nil {
			e.Headers = map[string]Secret{}
		}
		e.Headers[name] = value
	}
	return nil
}

func defaultModel(provider string) string {
	if provider == kindAnthropic {
		return "anthropic/claude-sonnet-5-5"
	}
	return "openai/gpt-5.5"
}

// FromEnv lists the providers that the environment gives, the preferred
// first: Anthropic, OpenAI, Gemini, a local Ollama, and always last the offline
// demonstration. The first that is not Unsupported and has a DefaultModel is
// the one to take.
//
// Ollama is listed if OLLAMA_HOST is set or probe says that it answers; probe
// gets its OpenAI-compatible address and returns the models that it has. It
// may be nil.
func FromEnv(getenv func(string) string, probe func(baseURL string) (models []string, ok bool)) []Endpoint {
	var all []Endpoint
	for _, kind := range []string{kindAnthropic, kindOpenAI} {
		prefix := strings.ToUpper(kind)
		if key := getenv(prefix + "_API_KEY"); key != "" {
			all = append(all, Endpoint{
				Name: kind, Kind: kind, BaseURL: getenv(prefix + "_BASE_URL"), APIKey: Secret(key),
				KeyFrom:      "the environment variable " + prefix + "_API_KEY",
				DefaultModel: defaultModel(kind), Note: "from " + prefix + "_API_KEY",
			})
		}
	}
	if getenv("GEMINI_API_KEY") != "" {
		all = append(all, Endpoint{
			Name: "gemini", Kind: "gemini", Unsupported: true,
			Note: "GEMINI_API_KEY is set, but Gemini is not supported by this version yet; set ANTHROPIC_API_KEY or OPENAI_API_KEY instead",
		})
	}
	if e, ok := ollama(getenv("OLLAMA_HOST"), probe); ok {
		all = append(all, e)
	}
	return append(all, Endpoint{
		Name: demoName, Kind: demoName, Models: []string{"offline"}, DefaultModel: demoName + "/offline",
		Note: "the built-in offline demonstration: no provider is configured",
	})
}

func ollama(host string, probe func(string) ([]string, bool)) (Endpoint, bool) {
	e := Endpoint{Name: "ollama", Kind: kindOpenAI, Note: "from OLLAMA_HOST"}
	var err error
	if e.BaseURL, err = ollamaURL(host); err != nil {
		e.Unsupported, e.Note = true, err.Error()
		return e, true
	}
	var answers bool
	if probe != nil {
		e.Models, answers = probe(e.BaseURL)
	}
	if host == "" && !answers {
		return Endpoint{}, false
	}
	if host == "" {
		e.Note = "a local Ollama answers at " + e.BaseURL
	}
	if len(e.Models) > 0 {
		e.DefaultModel = e.Name + "/" + e.Models[0]
	} else {
		e.Models = nil
		e.Note += "; choose its model with GOCLAW_MODEL=ollama/NAME"
	}
	return e, true
}

// ollamaURL reads OLLAMA_HOST as Ollama itself does (host, host:port or a web
// address) and returns its OpenAI-compatible address.
func ollamaURL(host string) (string, error) {
	const port = "11434"
	bad := errors.New("OLLAMA_HOST is no address; write HOST:PORT, such as 127.0.0.1:11434")
	if host == "" {
		host = "127.0.0.1"
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", bad
	}
	name := u.Hostname()
	switch name {
	case "", "0.0.0.0": // what a server listens on is nothing to call
		name = "127.0.0.1"
	case "::":
		name = "::1"
	}
	p := u.Port()
	if p == "" && u.Scheme == "http" {
		p = port
	}
	switch {
	case p != "":
		u.Host = net.JoinHostPort(name, p)
	case strings.Contains(name, ":"):
		u.Host = "[" + name + "]"
	default:
		u.Host = name
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(u.Path, "/v1") {
		u.Path += "/v1"
	}
	return u.String(), nil
}

// ModelFromEnv is GOCLAW_MODEL, an alias of the file resolved; "" if it is not
// set.
func (c Config) ModelFromEnv(getenv func(string) string) (string, error) {
	name := getenv("GOCLAW_MODEL")
	if name == "" {
		return "", nil
	}
	model, err := c.ResolveModel(name)
	if err != nil {
		return "", fmt.Errorf("GOCLAW_MODEL: %w", err)
	}
	return model, nil
}

const databaseVar = "GOCLAW_DATABASE_URL"

// DatabaseURL is the address of the PostgreSQL database: of
// GOCLAW_DATABASE_URL, else of the file. "" means SQLite in the home.
func (c Config) DatabaseURL(getenv func(string) string, secrets Secrets) (Secret, error) {
	given := getenv(databaseVar)
	if given == "" {
		return c.databaseURL(secrets)
	}
	if err := CheckDatabaseURL(given); err != nil {
		return "", fmt.Errorf("%s %w", databaseVar, err)
	}
	return Secret(given), nil
}

func (c Config) databaseURL(secrets Secrets) (Secret, error) {
	address, _, err := c.Database.URL.open(secrets)
	if err == nil && c.Database.URL.Name != "" {
		err = CheckDatabaseURL(address.Reveal())
	}
	if err != nil {
		return "", fmt.Errorf("database.url: %w", err)
	}
	return address, nil
}

// HomeDir is the state folder: GOCLAW_HOME, else .goclaw in the person's home.
// It is absolute and need not exist.
func HomeDir(getenv func(string) string) (string, error) {
	dir := getenv("GOCLAW_HOME")
	if dir == "" {
		home := first(getenv("HOME"), getenv("USERPROFILE"))
		if home == "" {
			return "", errors.New("neither GOCLAW_HOME nor HOME is set: set GOCLAW_HOME to the folder for GoClaw's state")
		}
		dir = filepath.Join(home, ".goclaw")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the home folder: %w", err)
	}
	return abs, nil
}

// FileIn is the path of the configuration file in a home folder.
func FileIn(home string) string { return filepath.Join(home, "goclaw.json") }

// CheckDatabaseURL says why s is no address of a PostgreSQL database. It never
// repeats s, which may hold a password.
func CheckDatabaseURL(s string) error {
	if !isPostgres(s) {
		return errors.New("is no address of a PostgreSQL database: write postgres://USER@HOST/DATABASE")
	}
	return nil
}
