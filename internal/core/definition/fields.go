package definition

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
	"goclaw/internal/core/schema"
)

// The readers of typed values. Each records what is wrong and then returns the
// zero value.

func (p *parser) text(f frontmatter.Field) string {
	if f.Value.Kind != frontmatter.String {
		p.at(LevelError, f.Value, fmt.Sprintf("%s is %s, not a text", f.Key, f.Value.Kind), "write a text, in quotes if need be")
		return ""
	}
	return f.Value.Text
}

func (p *parser) yes(f frontmatter.Field) bool {
	if f.Value.Kind != frontmatter.Bool {
		p.at(LevelError, f.Value, fmt.Sprintf("%s is %s", f.Key, f.Value.Kind), "write true or false")
	}
	return f.Value.Bool
}

func (p *parser) whole(f frontmatter.Field, least, most int64) int {
	v := f.Value
	if v.Kind != frontmatter.Int || v.Int < least || v.Int > most {
		p.at(LevelError, v, fmt.Sprintf("%s is no whole number from %d to %d", f.Key, least, most), "write one, without quotes")
		return 0
	}
	return int(v.Int)
}

// oneOf reads a word of a set, case aside.
func (p *parser) oneOf(f frontmatter.Field, words ...string) string {
	v := f.Value
	if v.Kind == frontmatter.String {
		word := strings.ToLower(strings.TrimSpace(v.Text))
		if slices.Contains(words, word) {
			return word
		}
		for _, w := range words {
			if schema.Near(word, w) {
				p.at(LevelError, v, fmt.Sprintf("%s is %q", f.Key, v.Text), fmt.Sprintf("did you mean %s?", w))
				return ""
			}
		}
	}
	p.at(LevelError, v, fmt.Sprintf("%s is %s", f.Key, shown(v)), "write one of "+strings.Join(words, ", "))
	return ""
}

func shown(v frontmatter.Value) string {
	if v.Text == "" || v.Kind == frontmatter.Null || len(v.Text) > 80 {
		return v.Kind.String()
	}
	return fmt.Sprintf("%q", v.Text)
}

// names reads a list of texts or a comma string.
func (p *parser) names(f frontmatter.Field) []string {
	out := []string{}
	switch v := f.Value; v.Kind {
	case frontmatter.String:
		for name := range strings.SplitSeq(v.Text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	case frontmatter.List:
		for _, item := range v.Items {
			if item.Kind != frontmatter.String || strings.TrimSpace(item.Text) == "" {
				p.at(LevelError, item, fmt.Sprintf("%s holds %s", f.Key, kindOf(item)), "write one text per entry")
				return nil
			}
			out = append(out, strings.TrimSpace(item.Text))
		}
	default:
		p.at(LevelError, v, fmt.Sprintf("%s is %s", f.Key, v.Kind), "write a list, or [] for none")
		return nil
	}
	return out
}

// model reads a name, or VS Code's list of which the first counts.
func (p *parser) model(f frontmatter.Field) {
	v := f.Value
	if v.Kind == frontmatter.List && len(v.Items) > 0 {
		p.at(LevelNotice, v, "of several models the first is taken", "name one")
		v = v.Items[0]
	}
	switch {
	case v.Kind == frontmatter.Null:
		p.at(LevelWarning, v, "model is empty; the usual one is taken", "name a model, write inherit, or remove the key")
	case v.Kind != frontmatter.String || strings.TrimSpace(v.Text) == "":
		p.at(LevelError, v, "model is "+kindOf(v), "name a model, an alias, a role or inherit")
	default:
		p.Model = strings.TrimSpace(v.Text)
	}
}

// thinking also reads the words of others: pi's minimal, xhigh and max.
func (p *parser) thinking(f frontmatter.Field) string {
	if f.Value.Kind == frontmatter.Bool && !f.Value.Bool {
		return "off"
	}
	others := map[string]string{"minimal": "low", "xhigh": "high", "max": "high"}
	if own, ok := others[strings.ToLower(strings.TrimSpace(f.Value.Text))]; ok && f.Value.Kind == frontmatter.String {
		p.at(LevelNotice, f.Value, fmt.Sprintf("thinking %s is taken as %s", f.Value.Text, own), "nothing to do")
		return own
	}
	return p.oneOf(f, "off", "low", "medium", "high")
}

func (p *parser) mode(f frontmatter.Field) {
	p.Mode = strings.ToLower(strings.TrimSpace(p.text(f)))
	switch p.Mode {
	case "subagent", "all", "":
	case "primary":
		p.at(LevelNotice, f.Value, "mode primary: it is no worker, so it can't be spawned", "write subagent or all to let it be one")
	default:
		p.at(LevelNotice, f.Value, fmt.Sprintf("mode %s has no meaning here", p.Mode), "nothing to do")
	}
}

// servers reads a list of names, a map by name, or a list of both.
func (p *parser) servers(f frontmatter.Field) {
	add := func(fields []frontmatter.Field) {
		for _, s := range fields {
			p.MCPServers = append(p.MCPServers, s.Key)
		}
	}
	switch v := f.Value; v.Kind {
	case frontmatter.Map:
		add(v.Fields)
	case frontmatter.List:
		for _, item := range v.Items {
			switch item.Kind {
			case frontmatter.String:
				p.MCPServers = append(p.MCPServers, item.Text)
			case frontmatter.Map:
				add(item.Fields)
			default:
				p.at(LevelError, item, f.Key+" holds "+item.Kind.String(), "write the name of a server")
				return
			}
		}
	case frontmatter.String:
		p.MCPServers = p.names(f)
	default:
		p.at(LevelError, v, f.Key+" is "+v.Kind.String(), "write a list of names, or [] for none")
		return
	}
	if len(p.MCPServers) > 0 {
		p.add(LevelNotice, f.Line, f.Col, "MCP servers are not started from here: "+strings.Join(p.MCPServers, ", "), "configure them in goclaw.json")
	}
}
