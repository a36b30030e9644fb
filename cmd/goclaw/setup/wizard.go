package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/edge/config"
)

// vendor is a kind of provider that can be chosen.
type vendor struct {
	id, label string
	name      string // of the provider; "" asks
	kind      string
	host      string // of the vendor's own address
	keys      string // where a person gets a key
	model     string
}

func vendors() []vendor {
	return []vendor{
		{"anthropic", "Anthropic (Claude)", "anthropic", "anthropic", "api.anthropic.com", "https://console.anthropic.com/settings/keys", "claude-sonnet-5-5"},
		{"openai", "OpenAI (GPT)", "openai", "openai", "api.openai.com", "https://platform.openai.com/api-keys", "gpt-5.5"},
		{"compatible", "another server that speaks OpenAI's API (a URL)", "", "openai", "", "", ""},
		{"ollama", "Ollama on this machine", "ollama", "openai", "", "", ""},
		{"demo", "the offline demonstration (a few rules, no key, no network)", "demo", "demo", "", "", "offline"},
	}
}

// Providers are what --provider takes.
func Providers() []string {
	var ids []string
	for _, v := range vendors() {
		ids = append(ids, v.id)
	}
	return ids
}

// wizard is one run through the questions.
type wizard struct {
	given   Given
	present Present
	Outside
	vendor vendor
	plan   Plan
	key    string // for calls, wherever it comes from
}

// Run asks what is open, tries the model, and returns what is to be done.
func Run(ctx context.Context, given Given, present Present, out Outside) (Plan, error) {
	w := &wizard{given: given, present: present, Outside: out}
	for _, step := range []func(context.Context) error{w.askProvider, w.askAddress, w.askKey, w.askModel, w.try, w.askWorkspace, w.askHeartbeat} {
		if err := step(ctx); err != nil {
			return Plan{}, err
		}
	}
	return w.plan, nil
}

func (w *wizard) say(format string, args ...any) {
	if w.Ask != nil {
		w.Ask.Say(format, args...)
	}
}

func (w *wizard) askProvider(ctx context.Context) error {
	all := vendors()
	at := slices.IndexFunc(all, func(v vendor) bool { return v.id == w.given.Provider })
	switch {
	case w.given.Provider != "" && at < 0:
		return wrong("--provider %q: use one of %s", w.given.Provider, strings.Join(Providers(), ", "))
	case at < 0 && w.Ask == nil:
		return missing("--provider "+strings.Join(Providers(), "|"), "the provider")
	case at < 0:
		labels := make([]string, len(all))
		for i, v := range all {
			labels[i] = v.label + w.mark(v)
		}
		var err error
		if at, err = w.Ask.Choose(ctx, "Which model shall answer?", labels, w.likely(all)); err != nil {
			return err
		}
	}
	w.vendor = all[at]
	w.plan.Provider, w.plan.Name, w.plan.Kind = w.vendor.id, w.vendor.name, w.vendor.kind
	return nil
}

// mark says what is known of a provider before it is chosen.
func (w *wizard) mark(v vendor) string {
	switch {
	case v.name != "" && w.present.Model != "" && strings.HasPrefix(w.present.Model, v.name+"/"):
		return " (as it is now)"
	case (v.id == "anthropic" || v.id == "openai") && w.Getenv(variable(v)) != "":
		return " (a key is in " + variable(v) + ")"
	case v.id == "ollama" && w.present.Ollama != "":
		return " (found at " + w.present.Ollama + ")"
	}
	return ""
}

// likely is the one to propose: what is configured, else what is at hand.
func (w *wizard) likely(all []vendor) int {
	name, _, _ := strings.Cut(w.present.Model, "/")
	if name != "" {
		for i, v := range all {
			if v.name == name || v.id == "compatible" && w.present.has(name) && !slices.ContainsFunc(all, func(o vendor) bool { return o.name == name }) {
				return i
			}
		}
	}
	for i, v := range all {
		if w.mark(v) != "" {
			return i
		}
	}
	return 0
}

func variable(v vendor) string { return strings.ToUpper(v.kind) + "_API_KEY" }

// askAddress finds out where the server is, and what it is called.
func (w *wizard) askAddress(ctx context.Context) (err error) {
	was := w.vendor.name
	if w.vendor.id == "compatible" {
		was, _, _ = strings.Cut(w.present.Model, "/")
	}
	old, _ := w.present.endpoint(cmp.Or(w.given.Name, was))
	switch w.vendor.id {
	case "demo":
		return nil
	case "anthropic", "openai":
		w.plan.URL = cmp.Or(w.given.URL, old.BaseURL, w.Getenv(strings.ToUpper(w.vendor.kind)+"_BASE_URL"))
	case "ollama":
		w.plan.URL = cmp.Or(w.given.URL, old.BaseURL, w.present.Ollama)
		if w.plan.URL == "" {
			return wrong("no Ollama answers on this machine; start it (ollama serve), or give its address with --url")
		}
	default:
		if w.plan.URL = w.given.URL; w.plan.URL == "" && w.Ask == nil {
			return missing("--url", "its address")
		}
		for w.plan.URL == "" {
			if w.plan.URL, err = w.Ask.Line(ctx, "Its address, with the API's version, such as http://127.0.0.1:8000/v1", old.BaseURL); err != nil {
				return err
			}
		}
	}
	if w.plan.URL != "" {
		if u, err := url.Parse(w.plan.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return wrong("the address is none that can be called: write http://… or https://…, without a user or password")
		}
	}
	if w.vendor.id != "compatible" {
		return nil
	}
	w.plan.Name = cmp.Or(w.given.Name, old.Name, nameFor(w.plan.URL))
	if w.given.Name == "" && w.Ask != nil {
		if w.plan.Name, err = w.Ask.Line(ctx, "A short name for it", w.plan.Name); err != nil {
			return err
		}
	}
	if err := goclaw.CheckAgentID(w.plan.Name); err != nil {
		return wrong("%v", err)
	}
	if w.plan.Name == "demo" || w.plan.Name == "anthropic" {
		return wrong("the name %q is taken; choose another with --name", w.plan.Name)
	}
	return nil
}

// nameFor makes a name of a host's: openrouter of openrouter.ai.
func nameFor(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "local"
	}
	host := strings.ToLower(u.Hostname())
	parts := strings.Split(host, ".")
	if net.ParseIP(host) != nil || len(parts) < 2 || goclaw.CheckAgentID(parts[len(parts)-2]) != nil {
		return "local"
	}
	return parts[len(parts)-2]
}

// askKey finds the key: the one that is given, the one there is, or a new one.
func (w *wizard) askKey(ctx context.Context) (err error) {
	old, known := w.present.endpoint(w.plan.Name)
	inEnv := ""
	if w.vendor.id == "anthropic" || w.vendor.id == "openai" {
		inEnv = w.Getenv(variable(w.vendor))
	}
	switch {
	case w.vendor.id == "demo", w.vendor.id == "ollama" && w.given.Key == "":
		w.plan.KeyFrom = KeyNone
		return nil
	case w.given.Key != "":
		w.newKey(w.given.Key)
		return nil
	}
	if known && old.KeyInClear {
		move := true
		if w.Ask != nil {
			if move, err = w.Ask.Yes(ctx, "The key stands in the configuration file, in clear text. Move it to where secrets are kept?", true); err != nil {
				return err
			}
		}
		if move {
			w.newKey(old.APIKey.Reveal())
			return nil
		}
	}
	if known && old.APIKey != "" {
		keep := true
		if w.Ask != nil {
			if keep, err = w.Ask.Yes(ctx, "Keep the key that is there (from "+old.KeyFrom+")?", true); err != nil {
				return err
			}
		}
		if keep {
			w.plan.KeyFrom, w.key = KeyAsWas, old.APIKey.Reveal()
			return nil
		}
	}
	if inEnv != "" {
		use := true
		if w.Ask != nil {
			if use, err = w.Ask.Yes(ctx, "Use the key in "+variable(w.vendor)+"? It stays in the environment; nothing is stored", true); err != nil {
				return err
			}
		}
		if use {
			w.plan.KeyFrom, w.plan.KeyVar, w.key = KeyEnv, variable(w.vendor), inEnv
			return nil
		}
	}
	return w.typeKey(ctx)
}

func (w *wizard) newKey(key string) {
	w.plan.KeyFrom, w.plan.Key, w.plan.KeyVar, w.key = KeyNew, key, "", key
}

// typeKey asks for a key unseen. Only servers of one's own may have none.
func (w *wizard) typeKey(ctx context.Context) error {
	optional := w.vendor.id == "compatible" || w.vendor.id == "ollama"
	switch {
	case w.Ask == nil && optional:
		w.plan.KeyFrom = KeyNone
		return nil
	case w.Ask == nil:
		return missing("--key-stdin", "the key on standard input")
	}
	question := "Key (it is not shown while you type or paste it)"
	if w.vendor.keys != "" {
		w.say("You get a key at %s", w.vendor.keys)
	}
	if optional {
		question += "; empty if it needs none"
	}
	for {
		key, err := w.Ask.Hidden(ctx, question)
		if err != nil {
			return err
		}
		if key != "" {
			w.newKey(key)
			return nil
		}
		if optional {
			w.plan.KeyFrom, w.plan.Key, w.key = KeyNone, "", ""
			return nil
		}
		w.say("Nothing came. Ctrl-C leaves everything as it was.")
	}
}

func (w *wizard) endpoint() config.Endpoint {
	e := config.Endpoint{Name: w.plan.Name, Kind: w.plan.Kind, BaseURL: w.plan.URL, APIKey: config.Secret(w.key)}
	if old, ok := w.present.endpoint(w.plan.Name); ok {
		e.Headers, e.IdleTimeout = old.Headers, old.IdleTimeout
	}
	return e
}

func (w *wizard) askModel(ctx context.Context) (err error) {
	standard := w.vendor.model
	if name, model, ok := strings.Cut(w.present.Model, "/"); ok && name == w.plan.Name {
		standard = model
	}
	var offered []string
	if w.vendor.id == "compatible" || w.vendor.id == "ollama" {
		offered, _ = w.Models(ctx, w.endpoint())
		if standard == "" && len(offered) > 0 {
			standard = offered[0]
		}
	}
	model := strings.TrimPrefix(w.given.Model, w.plan.Name+"/")
	switch {
	case model != "":
	case w.vendor.id == "demo":
		model = standard
	case w.Ask == nil && standard == "":
		return missing("--model", "the model")
	case w.Ask == nil:
		model = standard
	default:
		if len(offered) > 0 {
			const enough = 12
			more := ""
			if len(offered) > enough {
				more = fmt.Sprintf(" and %d others", len(offered)-enough)
			}
			w.say("It offers %s%s.", strings.Join(offered[:min(len(offered), enough)], ", "), more)
		}
		for model == "" {
			if model, err = w.Ask.Line(ctx, "Model", standard); err != nil {
				return err
			}
			model = strings.TrimPrefix(model, w.plan.Name+"/")
		}
	}
	w.plan.Model = w.plan.Name + "/" + model
	return nil
}

// try calls the model, and lets the person mend what it refuses.
func (w *wizard) try(ctx context.Context) error {
	if w.vendor.id == "demo" {
		w.plan.Tried, w.plan.Verdict = true, "The demonstration needs no test."
		return nil
	}
	for {
		w.say("Asking %s for one word …", w.plan.Model)
		_, model, _ := strings.Cut(w.plan.Model, "/")
		verdict, err := judge(w.Try(ctx, w.endpoint(), model), w.plan, w.vendor)
		if err != nil {
			return err // the person left
		}
		if w.plan.Tried, w.plan.Verdict = verdict.works, verdict.text; verdict.works {
			w.say("%s", verdict.text)
			return nil
		}
		if w.given.Insist {
			w.say("%s", verdict.text)
			return nil
		}
		if w.Ask == nil {
			return fmt.Errorf("%s (--force keeps it all the same)", verdict.text)
		}
		w.say("%s", verdict.text)
		if done, err := w.mend(ctx, verdict); done || err != nil {
			return err
		}
	}
}

// ErrLeft says that the person gave up; nothing is to be changed.
var ErrLeft = errors.New("left as it was")

func (w *wizard) mend(ctx context.Context, v verdict) (done bool, err error) {
	options := []string{"another key", "another model", "another address", "the same once more", "keep it all the same", "stop, and leave everything as it was"}
	n, err := w.Ask.Choose(ctx, "What now?", options, v.next)
	if err != nil {
		return false, err
	}
	w.given.Key, w.given.Model = "", ""
	switch n {
	case 0:
		err = w.typeKey(ctx)
	case 1:
		err = w.askModel(ctx)
	case 2:
		w.given.URL = ""
		w.plan.URL, err = w.Ask.Line(ctx, "Address", w.plan.URL)
	case 4:
		return true, nil
	case 5:
		return false, ErrLeft
	}
	return false, err
}

// Where the agent is to live.
const (
	Fresh = "fresh"
	Copy  = "copy"
	Share = "share"
)

func (w *wizard) askWorkspace(ctx context.Context) (err error) {
	w.plan.Workspace = w.present.Workspace
	if w.given.Workspace != "" {
		w.plan.Workspace = w.given.Workspace
	}
	how := w.given.OpenClaw
	switch {
	case how != "" && !slices.Contains([]string{Fresh, Copy, Share}, how):
		return wrong("--openclaw %q: use fresh, copy or share", how)
	case (how == Copy || how == Share) && w.present.OpenClaw == "":
		return wrong("--openclaw: there is no workspace of OpenClaw to take")
	case how == "" && w.present.OpenClaw != "" && w.present.OpenClaw != w.plan.Workspace && !w.present.Laid && w.given.Workspace == "" && w.Ask != nil:
		n, err := w.Ask.Choose(ctx, "There is a workspace of OpenClaw in "+w.present.OpenClaw+".", []string{
			"a copy of it becomes this agent's (OpenClaw's own stays as it is)",
			"both programs share it (each sees what the other writes)",
			"this agent begins afresh",
		}, 0)
		if err != nil {
			return err
		}
		how = []string{Copy, Share, Fresh}[n]
	}
	if how == Share {
		w.plan.Workspace, w.plan.Shared = w.present.OpenClaw, true
		return nil
	}
	if w.given.Workspace == "" && w.Ask != nil {
		line, err := w.Ask.Line(ctx, "The agent's folder", w.plan.Workspace)
		if err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(line, "~/"); ok {
			line = filepath.Join(cmp.Or(w.Getenv("HOME"), w.Getenv("USERPROFILE")), rest)
		}
		w.plan.Workspace = line
	}
	if w.plan.Workspace, err = filepath.Abs(w.plan.Workspace); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if info, err := os.Stat(w.plan.Workspace); err == nil && !info.IsDir() {
		return wrong("workspace %s is a file; choose a folder", w.plan.Workspace)
	}
	if how == Copy {
		w.plan.CopyFrom = w.present.OpenClaw
	}
	return nil
}

// askHeartbeat leaves how often it is, if it is there at all, to the file.
func (w *wizard) askHeartbeat(ctx context.Context) error {
	if w.Ask == nil {
		return nil
	}
	const often, never = "30m", "0m"
	every, err := time.ParseDuration(cmp.Or(w.present.Heartbeat, never))
	if err != nil {
		return fmt.Errorf("%s: %w", heartbeatKey, err)
	}
	how := often
	if every > 0 {
		how = w.present.Heartbeat
	}
	yes, err := w.Ask.Yes(ctx, "Shall the agent look at HEARTBEAT.md by itself, every "+how+"? (An empty file costs nothing)", every > 0)
	switch {
	case err != nil:
		return err
	case yes && every == 0:
		w.plan.Heartbeat = often
	case !yes && every > 0:
		w.plan.Heartbeat = never
	}
	return nil
}
